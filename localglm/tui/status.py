"""The two lines around the prompt: what goes on above it, what is in force below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from localglm.tui.safe_text import one_line
from localglm.units import duration_text

if TYPE_CHECKING:
    from localglm.engine.protocol import Loading, Opened, Prefill
    from localglm.tui.controls import Controls

_BAR = 20


@dataclass(frozen=True, slots=True)
class Facts:
    """What the footer says of the model and the machine."""

    model: str = ""
    device: str = ""
    backend: str = ""
    context: int = 0

    @classmethod
    def of(cls, opened: Opened, model: str, device: str) -> Facts:
        """Return the facts of an open model."""
        return cls(model, device, opened.backend, opened.context)


def footer(facts: Facts, controls: Controls, used: int, rate: float | None, width: int) -> str:
    """Return the footer; what fits least is left out first."""
    parts = [controls.text]
    if facts.context:
        left = max(0, facts.context - used)
        parts.append(f"context {used:,} used, {left:,} left")
    if facts.backend:
        parts.append(facts.backend)
    if rate is not None:
        parts.append(f"{rate:.1f} tok/s")
    parts += [one_line(text, 30) for text in (facts.model, facts.device) if text]
    parts.append("F1 help")
    line = parts[0]
    for part in parts[1:]:
        if cell_len(line) + 3 + cell_len(part) <= width:
            line += " │ " + part
    return line


def prefill_line(event: Prefill, width: int) -> str:
    """Return the bar of reading the prompt, short where the screen is narrow."""
    lines = [_prefill(event, cells) for cells in (_BAR, _BAR // 2, _BAR // 5, 0)]
    return next((line for line in lines if cell_len(line) <= width), lines[-1])


def _prefill(event: Prefill, cells: int) -> str:
    """Return the line with a bar of so many cells; what was kept has a shade of its own."""
    total = max(1, event.total)
    kept = min(cells, cells * event.cached // total)
    read = min(cells, max(kept, cells * event.done // total)) - kept
    bar = "▓" * kept + "█" * read + "░" * (cells - kept - read) + " " * bool(cells)
    text = f"reading {bar}{event.done:,}/{event.total:,} tokens"
    if event.cached:
        text += f" · {100 * event.cached // total} % kept"
    if event.tokens_per_s is not None:
        text += f" · {event.tokens_per_s:.0f} tok/s"
    if event.seconds_left is not None:
        text += f" · {duration_text(event.seconds_left)} left"
    return text + " · Esc stops"


def loading_line(event: Loading) -> str:
    """Say how far opening the model has come."""
    if event.total <= 1:
        return f"opening the model: {one_line(event.stage)}"
    done = _BAR * event.done // event.total
    share = 100 * event.done // event.total
    return f"opening the model {'█' * done}{'░' * (_BAR - done)} {one_line(event.stage)} {share} %"
