"""What the threads of the worker share: the stage that runs, and wishes about a request.

Every field is written by one thread and read by another; each is a single value, so no lock is
needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class StepCancelledError(Exception):
    """Raised inside a forward pass to leave it; never reaches the user."""


class Status:
    """What the main thread does now and how many steps it has done."""

    def __init__(self) -> None:
        self.stage = "waiting"
        self.ticks = 0
        self.request: int | None = None
        self.place: str | None = None

    def tick(self, stage: str, place: str | None = None) -> None:
        """Note progress; ``place`` is the intermediate that was computed last, inside a pass."""
        self.stage = stage
        self.place = place
        self.ticks += 1


class Control:
    """Wishes about one request."""

    def __init__(self, thinking_budget: int | None = None) -> None:
        self.is_cancelled = False
        self.wants_answer = False
        self.thinking_budget = thinking_budget


class StepProbe:
    """Notes progress at every intermediate of a forward pass; on cancel leaves it if it may.

    ``watch`` is called at each of them: a pass may take longer than memory lasts.
    """

    is_watching = False

    def __init__(
        self,
        status: Status,
        stage: str,
        control: Control,
        watch: Callable[[], None],
        *,
        may_leave: bool,
    ) -> None:
        self._status = status
        self._stage = stage
        self._control = control
        self._watch = watch
        self._may_leave = may_leave

    def record(self, name: str, value: Any) -> None:  # noqa: ARG002 - the probe's signature
        """Note that ``name`` was computed."""
        self._status.tick(f"{self._stage}, after {name}", name)
        self._watch()
        if self._may_leave and self._control.is_cancelled:
            raise StepCancelledError

    def record_cells(self, name: str, cells: Any) -> None:
        """Note that ``name`` was chosen."""
        self.record(name, cells)

    def replacement(self, name: str, first: int, count: int) -> None:  # noqa: ARG002
        """Replace nothing."""
        return
