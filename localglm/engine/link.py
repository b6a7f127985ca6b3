"""A connection to one engine process: events sorted by request, and the watchdog of each wait."""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from localglm.engine import protocol as p
from localglm.engine.failures import to_error
from localglm.errors import ModelFileError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localglm.engine.process import WorkerProcess

_POLL_SECONDS = 0.25
Inbox: TypeAlias = "queue.SimpleQueue[p.Event | WorkerError]"


@dataclass(slots=True)
class Link:
    """One engine process and the requests that wait for it."""

    process: WorkerProcess | None = None
    inboxes: dict[int, Inbox] = field(default_factory=dict)
    end: WorkerError | None = None
    is_open: bool = False
    stage: str = "starting"

    def on_event(self, event: p.Event) -> None:
        """Hand an event to the request it belongs to; events of abandoned requests are dropped."""
        if isinstance(event, p.Beat):
            self.stage = event.stage
        # A sign of life counts for requests that wait their turn, and damage concerns them all.
        if isinstance(event, p.Beat) or event.request == 0:
            for inbox in list(self.inboxes.values()):
                inbox.put(event)
            return
        if (waiting := self.inboxes.get(event.request)) is not None:
            waiting.put(event)

    def on_end(self, reason: WorkerError) -> None:
        """Tell every waiting request why the process is gone."""
        if self.end is None:
            self.end = reason
        for inbox in list(self.inboxes.values()):
            inbox.put(self.end)

    @property
    def is_usable(self) -> bool:
        """Whether requests can be sent."""
        return self.end is None and self.process is not None and self.process.is_alive


@dataclass(slots=True)
class Wait:
    """Waiting for the events of one request, with the watchdog."""

    link: Link
    request: int
    inbox: Inbox

    def events(self, limit: float) -> Iterator[p.Event]:
        """Yield events up to the final one.

        The clock of the watchdog stands still while this process itself was stopped, as on a laptop
        that sleeps.
        Raises: the error the engine reports; WorkerError when the process died or hung.
        """
        quiet, seen = 0.0, time.monotonic()
        ticks: tuple[str, int] | None = None
        try:
            while True:
                event = self._next()
                now = time.monotonic()
                quiet += min(now - seen, 4 * _POLL_SECONDS)
                seen = now
                if isinstance(event, p.Beat):
                    news = (event.stage, event.ticks)
                    quiet, ticks = (quiet, ticks) if news == ticks else (0.0, news)
                elif event is not None:
                    quiet = 0.0
                    yield self._checked(event)
                    seen = time.monotonic()
                    if isinstance(event, p.FINAL_EVENTS):
                        return
                if quiet >= limit:
                    raise self._hung(limit)
        finally:
            self.link.inboxes.pop(self.request, None)

    def _next(self) -> p.Event | WorkerError | None:
        try:
            return self.inbox.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            return None

    def _checked(self, event: p.Event | WorkerError) -> p.Event:
        if isinstance(event, WorkerError):
            raise event
        if isinstance(event, p.Failed):
            error = to_error(event)
            if isinstance(error, ModelFileError):
                self.link.is_open = False
            raise error
        return event

    def _hung(self, limit: float) -> WorkerError:
        """End a process that makes no progress, and say what it was doing."""
        error = WorkerError(
            f"the engine made no progress for {limit:g} seconds and was ended",
            why=f"it was {self.link.stage}",
            try_="repeat the request; the engine is started again",
        )
        self.link.end = error
        if self.link.process is not None:
            self.link.process.kill()
        return error
