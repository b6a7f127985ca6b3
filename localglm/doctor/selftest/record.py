"""What a self-test found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from localglm.engine.protocol import PartKind, TestLevel

Status: TypeAlias = Literal["passed", "failed", "crashed", "hung"]
Verdict: TypeAlias = Literal["passed", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Card:
    """The device as the user knows it. ``device`` selects it in the engine; None: the only one."""

    name: str
    driver: str
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Progress: this part runs now, ``done`` of ``total`` lie behind."""

    name: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Result:
    """One op, one probe of arithmetic or the model.

    ``worst`` counts tolerances, at most 1 passes; None: nothing comparable came back, and ``why``
    may say more.
    """

    part: PartKind
    name: str
    status: Status
    cases: int
    worst: float | None
    worst_case: str
    seconds: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """A whole self-test. ``fault`` says why the device could not be tested to the end."""

    level: TestLevel
    backend: str
    card: Card
    verdict: Verdict
    results: tuple[Result, ...]
    seconds: float
    fault: str = ""
    advice: str = ""

    @property
    def failures(self) -> tuple[Result, ...]:
        """Results that make the verdict "failed"."""
        return tuple(r for r in self.results if r.status != "passed")

    def lines(self) -> list[str]:
        """Name the device, what failed on it and the next thing to try."""
        where = f"{self.backend} on {self.card.name} (driver {self.card.driver})"
        count = len(self.results)
        if self.verdict == "stopped":
            return [f"self-test of {where} stopped after {count} parts"]
        if self.verdict == "passed":
            return [f"self-test of {where}: all {count} parts passed"]
        out = [f"self-test of {where} failed"]
        out += [_sentence(r) for r in self.failures]
        out += [self.fault] if self.fault else []
        return [*out, f"try: {self.advice}"]


def _sentence(result: Result) -> str:
    if result.status in ("crashed", "hung"):
        did = "ended" if result.status == "crashed" else "hung"
        return f"{result.name}: the engine process {did} in it"
    if result.part == "arithmetic":
        return f"{result.name}: {result.why or f'not exact ({result.worst_case})'}"
    if result.why:
        return f"{result.name}: {result.why}"
    off = "not comparable" if result.worst is None else f"{result.worst:.3g} tolerances off"
    return f"{result.name}: {off} ({result.worst_case})"
