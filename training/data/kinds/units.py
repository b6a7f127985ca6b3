"""Turning a quantity into a smaller unit."""

from __future__ import annotations

from dataclasses import dataclass

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "units"


@dataclass(frozen=True, slots=True)
class _Step:
    """``factor`` small units make one large unit; values go up to ``top``."""

    large: str
    small: str
    factor: int
    top: int


_STEPS = (
    _Step("km", "m", 1000, 250), _Step("m", "cm", 100, 250), _Step("cm", "mm", 10, 250),
    _Step("kg", "g", 1000, 250), _Step("t", "kg", 1000, 250), _Step("l", "ml", 1000, 250),
    _Step("hours", "minutes", 60, 24), _Step("minutes", "seconds", 60, 24),
    _Step("days", "hours", 24, 20), _Step("weeks", "days", 7, 60),
    _Step("years", "months", 12, 40), _Step("dozen", "pieces", 12, 40),
    _Step("euros", "cents", 100, 250), _Step("KiB", "bytes", 1024, 8),
)  # fmt: skip


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one conversion."""

    def draw() -> tuple[str, tuple[_Step, int]]:
        step = pick.of(_STEPS)
        value = pick.within(2, step.top)
        return f"units {value} {step.large} {step.small}", (step, value)

    question, (step, value) = admitted(want, draw)
    user = pick.of((
        f"How many {step.small} are {value} {step.large}?",
        f"Convert {value} {step.large} to {step.small}.",
        f"{value} {step.large} in {step.small}?", f"{value} {step.large} in {step.small}",
        f"convert {value} {step.large} to {step.small}",
        f"What is {value} {step.large} in {step.small}?",
        f"how many {step.small} in {value} {step.large}",
    ))  # fmt: skip
    result = value * step.factor
    low = f"{value} x {step.factor} = {result}"
    tens, ones = value // 10 * 10, value % 10
    parts = (
        f"{tens} x {step.factor} = {tens * step.factor}, {ones} x {step.factor} ="
        f" {ones * step.factor}, together {result}."
        if tens and ones
        else f"{value} x {step.factor} = {result}."
    )
    high = f"From {step.large} to {step.small} I multiply by {step.factor}. {parts}"
    check = f"Check: {result} / {step.factor} = {value}, and {step.small} are the smaller unit."
    answer = f"{value} {step.large} = {result} {step.small}."
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)
