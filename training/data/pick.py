"""Random choices, the held-out split, and what a generator is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from random import Random
from typing import TypeVar

from training.data.conversation import Effort
from training.data.topics import Topic

_T = TypeVar("_T")
_HELD_OUT_ONE_IN = 20
_MOST_DRAWS = 5000


class Split(Enum):
    """Which part of the questions may be asked."""

    TRAIN = "train"
    HELD_OUT = "held-out"


def is_held_out(question: str) -> bool:
    """Tell whether a question is one of the twentieth that training never asks."""
    digest = blake2b(question.encode(), digest_size=4, person=b"demo-questions").digest()
    return int.from_bytes(digest, "little") % _HELD_OUT_ONE_IN == 0


class Pick:
    """Choices from a seed; quicker than the methods of ``random.Random`` and as even."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed).random

    def below(self, bound: int) -> int:
        """Return a number from 0 to ``bound`` - 1."""
        return int(self.random() * bound)

    def within(self, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``, both included."""
        return low + int(self.random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        """Return true in ``share`` of the calls."""
        return self.random() < share

    def of(self, items: Sequence[_T]) -> _T:
        """Return one of ``items``."""
        return items[int(self.random() * len(items))]

    def some(self, items: Sequence[_T], count: int) -> list[_T]:
        """Return ``count`` different ones of ``items``, in random order."""
        rest = list(items)
        for place in range(count):
            other = place + int(self.random() * (len(rest) - place))
            rest[place], rest[other] = rest[other], rest[place]
        return rest[:count]

    def weighted(self, items: Sequence[_T], shares: Sequence[float]) -> _T:
        """Return one of ``items``; ``shares`` need not add up to 1."""
        left = self.random() * sum(shares)
        for item, share in zip(items, shares, strict=True):
            left -= share
            if left < 0:
                return item
        return items[-1]


@dataclass(frozen=True, slots=True)
class Want:
    """What a generator is asked for. ``room``: tokens the conversation may fill.

    ``measure`` counts the tokens of a text.
    """

    split: Split
    effort: Effort
    topic: Topic
    room: int
    measure: Callable[[str], int]


def admitted(want: Want, draw: Callable[[], tuple[str, _T]]) -> tuple[str, _T]:
    """Draw (question, content) until the question belongs to the split asked for."""
    wanted = want.split is Split.HELD_OUT
    for _ in range(_MOST_DRAWS):
        question, content = draw()
        if is_held_out(question) is wanted:
            return question, content
    message = f"no question of the split {want.split.value} in {_MOST_DRAWS} draws: {question}"
    raise RuntimeError(message)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its thought and its answer; ``question`` is the canonical spelling."""

    question: str
    user: str
    thought: str | None
    answer: str


def thought_at(effort: Effort, low: str, high: str, check: str) -> str | None:
    """Return the thought of a level: a sketch, the steps, or the steps and a check."""
    if effort == "off":
        return None
    if effort == "low":
        return low
    return high if effort == "high" else f"{high}\n{check}"
