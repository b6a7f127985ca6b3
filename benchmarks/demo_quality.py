"""How well the demonstration model answers held-out questions, through the program's own engine.

Run: ``python -m benchmarks.demo_quality f32=demo-f32.gguf q8_0=demo-q8_0.gguf [--backend cpu]``

Greedy. Prints, for every file and back end: exact answers by group, thought lengths by level, form
with thinking off, well-formed tool calls, and the perplexity of held-out conversations, with its
ratio to the first file. A full run asks about 1,900 questions; ``--per-group 10`` is a short one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path

import numpy as np

from benchmarks.demo_questions import Question, perplexity_set, questions
from localglm.engine import protocol as p
from localglm.engine.client import Engine
from localglm.engine.devices import DeviceChoice, opened
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.load import load_model
from training.data.conversation import Turn

_CONTEXT = 16_384
_LONGEST_ANSWER = 700
_CHUNK = 512


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model did with one question."""

    group: str
    effort: str
    is_exact: bool
    is_well_formed: bool
    thinking_tokens: int
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one file on one back end."""

    name: str
    backend: str
    outcomes: list[Outcome]
    perplexity: float | None
    seconds: float


def ask(engine: Engine, question: Question) -> Outcome:
    """Ask one question and judge what comes back."""
    prompt = p.ChatPrompt(
        tuple(map(_message, question.turns)),
        effort=question.effort,
        tools=tuple(tool.spec for tool in question.tools),
    )
    generation = engine.generate(
        p.Generate(
            request=0, prompt=prompt, sampling=p.Sampling(temperature=0.0),
            max_tokens=_LONGEST_ANSWER,
        )
    )  # fmt: skip
    answer, calls = "", []
    for event in generation:
        if isinstance(event, p.Delta) and event.kind == "answer":
            answer += event.text
        elif isinstance(event, p.ToolCall):
            calls.append((event.name, event.arguments))
    assert generation.done is not None, "a request ends with Done or an error"
    return judge(question, answer, calls, generation.done)


def judge(
    question: Question, answer: str, calls: list[tuple[str, dict[str, object]]], done: p.Done
) -> Outcome:
    """Compare an answer with the expected one.

    Well-formed: it ended by itself; thinking happened if and only if the level asks for it; calls
    came as calls, exactly where one is due, to a function on offer.
    """
    expected = [(call.name, dict(call.arguments)) for call in question.calls]
    offered = {tool.spec["function"]["name"] for tool in question.tools}
    has_form = (
        done.reason == ("tool_calls" if expected else "end")
        and (done.usage.thinking > 0) == (question.effort != "off")
        and bool(calls) == bool(expected)
        and all(name in offered for name, _ in calls)
        and "<tool_call>" not in answer
        and "<think>" not in answer
    )
    is_right = answer.strip() == question.answer and calls == expected
    return Outcome(
        question.group, question.effort, is_right, has_form, done.usage.thinking,
        question.answer or str(expected), answer if not calls else answer + str(calls),
    )  # fmt: skip


def perplexity(path: Path, backend: str, per_kind: int) -> float:
    """Return the perplexity of what the model writes in held-out conversations, teacher forced.

    Math: exp(-mean of log p over the tokens with loss).
    """
    total, count = 0.0, 0
    with open_model(path) as file, opened(DeviceChoice(backend)) as device:
        geometry, weights = load_model(file, device)
        model = Model(geometry, weights, device)
        for made in perplexity_set(per_kind):
            state = model.new_state(context=len(made.ids), cache_type="f32")
            rows = [
                model.forward(state, made.ids[at : at + _CHUNK], logits="all")
                for at in range(0, len(made.ids), _CHUNK)
            ]
            logits = np.concatenate([row for row in rows if row is not None])[:-1]
            targets = np.array(made.ids[1:])
            taught = np.frombuffer(bytes(made.taught[1:]), np.uint8).astype(bool)
            total += log_likelihood(logits[taught], targets[taught])
            count += int(taught.sum())
    return float(np.exp(-total / count))


def log_likelihood(logits: np.ndarray, targets: np.ndarray) -> float:
    """Return the summed log probability of ``targets``.

    Shapes: logits [t, n]; targets [t].
    """
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    chosen = wide[np.arange(len(targets)), targets]
    return float((chosen - np.log(np.exp(wide).sum(axis=1))).sum())


def run(name: str, path: Path, backend: str, asked: Sequence[Question], per_kind: int) -> Report:
    """Ask every question of one file on one back end."""
    start = time.monotonic()
    outcomes = []
    with Engine() as engine:
        engine.open_model(
            p.OpenModel(request=0, path=str(path), backend=backend, context=_CONTEXT, chunk=_CHUNK)
        )
        for place, question in enumerate(asked):
            outcomes.append(ask(engine, question))
            if sys.stderr.isatty():
                print(f"\r{name} {backend}: {place + 1}/{len(asked)}", end="", file=sys.stderr)
    value = perplexity(path, backend, per_kind) if per_kind else None
    return Report(name, backend, outcomes, value, time.monotonic() - start)


def _message(turn: Turn) -> p.Message:
    calls = tuple(
        {"type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}}
        for c in turn.calls
    )
    return p.Message(role=turn.role, content=turn.content, reasoning=turn.thought, tool_calls=calls)


is_exact = attrgetter("is_exact")
is_well_formed = attrgetter("is_well_formed")


def table(reports: Sequence[Report]) -> str:
    """Return all results as Markdown."""
    heads = [f"{report.name} {report.backend}" for report in reports]
    lines = [f"| what | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]

    def row(label: str, cells: Sequence[str]) -> None:
        lines.append(f"| {label} | {' | '.join(cells)} |")

    for group, effort in dict.fromkeys((o.group, o.effort) for o in reports[0].outcomes):
        chosen = [_chosen(report, effort=effort, group=group) for report in reports]
        row(f"{group}, {effort}", [_share(found, is_exact) for found in chosen])
    _form_rows(reports, row)
    first = reports[0].perplexity
    if first is not None:
        row("perplexity", [
            f"{r.perplexity:.4f} (x {r.perplexity / first:.4f})" if r.perplexity else "-"
            for r in reports
        ])  # fmt: skip
    row("seconds", [f"{report.seconds:.0f}" for report in reports])
    return "\n".join(lines)


def _form_rows(reports: Sequence[Report], row: Callable[[str, Sequence[str]], None]) -> None:
    for effort in ("off", "low", "high", "max"):
        chosen = [_chosen(report, effort=effort) for report in reports]
        row(
            f"well-formed, {effort}",
            [_share(found, is_well_formed) for found in chosen],
        )
        if effort == "off":
            row("thinking tokens, off", [str(sum(o.thinking_tokens for o in f)) for f in chosen])
        else:
            # The three levels are asked the same questions.
            row(f"mean thought, {effort}", [_mean([o.thinking_tokens for o in f]) for f in chosen])
    calls = [_chosen(report, group="tool call") for report in reports]
    row("well-formed tool calls", [_share(found, is_well_formed) for found in calls])


def _chosen(
    report: Report, *, effort: str | None = None, group: str | None = None
) -> list[Outcome]:
    return [
        outcome
        for outcome in report.outcomes
        if effort in {None, outcome.effort} and group in {None, outcome.group}
    ]


def _share(found: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> str:
    if not found:
        return "-"
    hits = sum(holds(outcome) for outcome in found)
    return f"{100 * hits / len(found):.1f} % ({hits}/{len(found)})"


def _mean(values: Sequence[int]) -> str:
    return f"{sum(values) / len(values):.1f}" if values else "-"


def mistakes(report: Report, most: int) -> str:
    """Return up to ``most`` wrong answers of each group, with what was expected."""
    by_group: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in report.outcomes:
        if not outcome.is_exact:
            by_group[f"{outcome.group}, {outcome.effort}"].append(outcome)
    return "\n".join(
        f"{group}: expected {o.expected!r}, got {o.got!r}"
        for group, found in by_group.items()
        for o in found[:most]
    )


def main() -> None:
    """Run what the command line names and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--backend", action="append", help="may be repeated; default: cpu")
    parser.add_argument("--per-group", type=int, help="at most so many of each group and level")
    parser.add_argument("--groups", nargs="+", help="only these, such as 'lookup 8k' arithmetic")
    parser.add_argument("--perplexity", type=int, default=8, help="conversations of each kind")
    parser.add_argument("--mistakes", type=int, default=0, help="wrong answers to show of a group")
    parser.add_argument("--json", type=Path, help="write every outcome there")
    options = parser.parse_args()
    asked = questions(options.per_group)
    if options.groups:
        asked = [question for question in asked if question.group in options.groups]
    reports = []
    for backend in options.backend or ["cpu"]:
        for item in options.files:
            name, _, path = item.partition("=")
            reports.append(run(name, Path(path), backend, asked, options.perplexity))
            if options.mistakes:
                print(mistakes(reports[-1], options.mistakes))
    print(table(reports))
    if options.json:
        options.json.write_text(json.dumps([asdict(report) for report in reports], indent=1))


if __name__ == "__main__":
    main()
