"""The fixed held-out questions for the demonstration model, by group and thinking level.

Run: ``python -m benchmarks.demo_questions`` to see how many there are of each group, with examples.
None of them is ever asked in training; see ``training/data/pick.py``.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from training.data.conversation import Call, Conversation, Effort, Tool, Turn
from training.data.encode import Encoded, Writer
from training.data.kinds import BY_NAME, KINDS
from training.data.pick import Pick, Split, Want
from training.data.topics import TOPICS
from training.data.vocabulary import Encoder

SHORT_KINDS = tuple(
    kind.name for kind in KINDS if not kind.fills and kind.name not in {"tools", "mixed"}
)
LEVELS: tuple[Effort, ...] = ("low", "high", "max")
_SHORT_ROOM, _TOOL_ROOM, _MEMORY_ROOM = 200, 500, 600
_OFF = {
    **dict.fromkeys(SHORT_KINDS, 80),
    "memory": 80, "tools": 80, "lookup 1k": 80, "lookup 4k": 30, "lookup 8k": 40, "lookup 16k": 10,
}  # fmt: skip
_THINKING = {
    **dict.fromkeys(SHORT_KINDS, 12),
    "arithmetic": 40, "memory": 12, "tools": 12, "lookup 1k": 12, "lookup 8k": 4,
}  # fmt: skip
_ROOMS = {"lookup 1k": 1000, "lookup 4k": 4000, "lookup 8k": 8000, "lookup 16k": 15_500,
          "memory": _MEMORY_ROOM, "tools": _TOOL_ROOM}  # fmt: skip
_TRIES = 60


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt with the one right answer: a text, or a text and calls."""

    group: str
    effort: Effort
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...]
    answer: str
    calls: tuple[Call, ...]


def questions(per_group: int | None = None) -> list[Question]:
    """Return all questions in a fixed order, at most ``per_group`` of each group and level."""
    counts: Counter[tuple[str, Effort]] = Counter()
    kept = []
    for question in _all():
        counts[question.group, question.effort] += 1
        if per_group is None or counts[question.group, question.effort] <= per_group:
            kept.append(question)
    return kept


def perplexity_set(per_kind: int) -> list[Encoded]:
    """Return encoded held-out conversations of every kind at every level in turn."""
    encoder = Encoder()
    writer, levels = Writer(encoder), ("off", *LEVELS)
    made = []
    for kind in KINDS:
        for place in range(per_kind):
            want = Want(
                Split.HELD_OUT, levels[place % 4], TOPICS[place % len(TOPICS)], 700, encoder.count
            )
            made.append(writer.whole(kind.make(Pick(f"perplexity {kind.name} {place}"), want)))
    return made


def _all() -> Iterator[Question]:
    encoder = Encoder()
    for levels, counts in ((("off",), _OFF), (LEVELS, _THINKING)):
        for name, count in counts.items():
            for seed in _distinct_seeds(name, levels[0], count, encoder):
                # The same seed gives the same question at every level but off.
                for level in levels:
                    yield from _stages(name, _conversation(name, level, seed, encoder))


def _distinct_seeds(name: str, level: Effort, count: int, encoder: Encoder) -> list[int]:
    """Return the first seeds whose prompts are all different."""
    seen: dict[tuple[Turn, ...], int] = {}
    for seed in range(count * _TRIES):
        made = _conversation(name, level, seed, encoder)
        seen.setdefault(made.turns[:-1], seed)
        if len(seen) == count:
            return list(seen.values())
    message = f"{name} has only {len(seen)} different held-out questions, {count} are wanted"
    raise RuntimeError(message)


def _conversation(name: str, effort: Effort, seed: int, encoder: Encoder) -> Conversation:
    room = _ROOMS.get(name, _SHORT_ROOM)
    want = Want(Split.HELD_OUT, effort, TOPICS[seed % len(TOPICS)], room, encoder.count)
    return BY_NAME[name.split(maxsplit=1)[0]].make(Pick(f"question {name} {seed}"), want)


def _stages(name: str, made: Conversation) -> Iterator[Question]:
    """Yield what is asked of the model: the last answer, and a call that leads to it."""
    for place, turn in enumerate(made.turns):
        is_last = place == len(made.turns) - 1
        if turn.role != "assistant" or not (is_last or turn.calls):
            continue
        group = name if name != "tools" else "tool call" if turn.calls else "tool answer"
        before = made.turns[:place]
        yield Question(group, made.effort, before, made.tools, turn.content, turn.calls)


def main() -> None:
    """Print the counts and one example of each group."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", action="store_true")
    options = parser.parse_args()
    found = questions()
    counts = Counter((question.group, question.effort) for question in found)
    for (group, effort), count in counts.items():
        print(f"{group:12} {effort:5} {count:5}")
        if options.examples:
            question = next(q for q in found if (q.group, q.effort) == (group, effort))
            print(
                f"   {question.turns[-1].content[-300:]!r} -> {question.answer or question.calls!r}"
            )
    print(f"{len(found)} questions")


if __name__ == "__main__":
    main()
