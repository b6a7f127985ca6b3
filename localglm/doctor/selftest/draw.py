"""The op x back end matrix as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localglm.doctor.selftest.record import Result, SelfTest

_BAR = 10


@dataclass(frozen=True, slots=True)
class _Signs:
    passed: str
    failed: str
    rule: str
    full: str
    empty: str
    absent: str


_UNICODE = _Signs("✓", "✗", "─", "█", "░", "·")
_ASCII = _Signs("ok", "XX", "-", "#", ".", ".")


def matrix(tests: Sequence[SelfTest], *, ascii_only: bool = False) -> str:
    """Draw one row per op, probe and model, one column per self-test.

    A cell holds the mark, the worst error in units of its tolerance, and a bar that is full where
    the tolerance is used up. Failures follow with the device and the next thing to try.
    """
    signs = _ASCII if ascii_only else _UNICODE
    names = list(dict.fromkeys((r.part, r.name) for t in tests for r in t.results))
    left = max([len(name) for _, name in names] + [2])
    columns = [{(r.part, r.name): _cell(r, signs) for r in t.results} for t in tests]
    widths = [
        max([len(t.backend), *(len(c) for c in column.values())])
        for t, column in zip(tests, columns, strict=True)
    ]
    heads = ["op".ljust(left), *(t.backend.ljust(w) for t, w in zip(tests, widths, strict=True))]
    rule = signs.rule * (sum(widths) + left + 2 * len(widths))
    out = ["  ".join(heads).rstrip(), rule]
    previous = "op"
    for part, name in names:
        out += [rule] if part != previous else []
        previous = part
        cells = [
            column.get((part, name), signs.absent).ljust(width)
            for column, width in zip(columns, widths, strict=True)
        ]
        out.append("  ".join([name.ljust(left), *cells]).rstrip())
    out.append(rule)
    return "\n".join([*out, *(line for t in tests for line in t.lines())])


def _cell(result: Result, signs: _Signs) -> str:
    mark = (signs.passed if result.status == "passed" else signs.failed).ljust(len(signs.passed))
    if result.status in ("crashed", "hung"):
        return f"{mark} {result.status}"
    if result.part == "arithmetic":
        return f"{mark} {'exact' if result.status == 'passed' else 'not exact'}"
    if result.worst is None:
        return f"{mark} {'error' if result.why else 'not comparable'}"
    used = round(min(result.worst, 1.0) * _BAR)
    bar = signs.full * used + signs.empty * (_BAR - used)
    return f"{mark} {_figure(result.worst)} {bar}"


def _figure(worst: float) -> str:
    return (f"{worst:.2f}" if worst < 100 else f"{worst:.0e}").rjust(6)
