"""A memory plan in words; knows neither numpy nor the model, so that commands may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localglm.engine.events import MemoryPart, MemoryPlan

_BAR = 24
_BEGIN, _FITS = "memory: ", "everything fits"
_HOMES = {"memory": "memory", "file": "file pages", "disk": "disk"}


def plan_line(plan: MemoryPlan) -> str:
    """Return the plan in one line."""
    own, pages = size_text(plan.process), size_text(plan.total("file"))
    text = f"{_BEGIN}{own} of its own and {pages} of file pages, of {size_text(plan.limit)}"
    if plan.experts == "mapped":
        return f"{text}; {_FITS}"
    left = size_text(plan.total("disk"))
    text += f"; {left} stay on the disk"
    return text if plan.disk is None else f"{text}, about {plan.disk.tokens_per_s:.2g} tok/s"


def is_plan(stage: str) -> bool:
    """Whether a stage of opening a model is the line of its plan."""
    return stage.startswith(_BEGIN)


def everything_fits(line: str) -> bool:
    """Whether the line of a plan says that nothing is read from the disk."""
    return line.endswith(_FITS)


def plan_lines(plan: MemoryPlan) -> Iterator[str]:
    """Yield the plan as a table with bars."""
    shown = [part for part in plan.parts if part.nbytes]
    width = max(len(part.name) for part in shown)
    largest = max(part.nbytes for part in shown)
    for part in shown:
        yield f"{part.name:<{width}}  {_HOMES[part.home]:<10}  {_bar(part, largest)}"
    total = plan.total("memory", "file")
    yield ""
    yield (
        f"{'memory and file pages':<{width}}  {size_text(total)} of {size_text(plan.limit)}: "
        f"{plan.reason}"
    )
    if plan.experts == "mapped":
        yield f"{'experts':<{width}}  in memory, as pages of the file"
        return
    yield f"{'experts':<{width}}  read from the disk when wanted; they do not fit into memory"
    if plan.disk is not None:
        yield f"{'estimated rate':<{width}}  {plan.disk.tokens_per_s:.2g} tok/s: {plan.disk.basis}"


def _bar(part: MemoryPart, largest: int) -> str:
    filled = round(_BAR * part.nbytes / largest)
    return f"{'█' * filled + '░' * (_BAR - filled)} {size_text(part.nbytes):>10}"
