"""The engine in threads of its own, and its events as frames: at most fifteen a second.

The user interface puts work in and returns at once. What comes back is merged: runs of text become
one piece, and of progress only the last counts.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from localglm.engine import protocol as p
from localglm.errors import LocalGlmError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FRAME_S = 1 / 15


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one kind that came within a frame, and of how many deltas it was made."""

    kind: p.DeltaKind
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Broke:
    """A request ended in an error. ``was`` names it: open, generate or restart."""

    was: str
    error: LocalGlmError


@dataclass(frozen=True, slots=True)
class Restarted:
    """The engine runs again after a crash; what it had read is lost."""


@dataclass(frozen=True, slots=True)
class Came:
    """The reply to a question asked on the side; an error when there is none."""

    what: str
    reply: p.Event | LocalGlmError


News: TypeAlias = (
    Piece | p.Prefill | p.Loading | p.Opened | p.Notice | p.ToolCall | p.Done
    | Broke | Restarted | Came
)  # fmt: skip


class Generating(Protocol):
    """A running request."""

    def __iter__(self) -> Iterator[p.Event]: ...
    def cancel(self) -> None:
        """Ask for the end."""

    def end_thinking(self) -> None:
        """Ask for the answer."""

    def set_budget(self, tokens: int | None) -> None:
        """Change the thinking budget."""


class EngineLike(Protocol):
    """What the bridge asks of an engine; ``engine.client.Engine`` is one."""

    def open_model(
        self, request: p.OpenModel, on_progress: Callable[[p.Loading], None] | None = None
    ) -> p.Opened:
        """Open a model."""

    def generate(self, request: p.Generate) -> Generating:
        """Start an answer."""

    def call(self, request: p.Request) -> p.Event:
        """Ask something with one reply."""

    def stop(self, seconds: float | None = None) -> None:
        """End the process."""


class Frames:
    """Collects news from any thread and hands it on in batches.

    ``wake`` is called from the thread that brings news, with the seconds until ``take`` is due; it
    is called again only after ``take``.
    """

    def __init__(
        self, wake: Callable[[float], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._lock = threading.Lock()
        self._news: list[News] = []
        self._texts: list[str] = []
        self._taken = float("-inf")
        self._is_woken = False

    def add(self, news: p.Event | News) -> None:
        """Take one event."""
        with self._lock:
            self._merge(news)
            if self._is_woken or not self._news:
                return
            self._is_woken = True
            wait = max(0.0, self._taken + FRAME_S - self._clock())
        self._wake(wait)

    def take(self) -> list[News]:
        """Return what came since the last call."""
        with self._lock:
            self._close_piece()
            out, self._news = self._news, []
            self._is_woken = False
            self._taken = self._clock()
        return out

    def _merge(self, news: p.Event | News) -> None:
        last = self._news[-1] if self._news else None
        match news:
            case p.Delta(kind=kind, text=text):
                if isinstance(last, Piece) and last.kind == kind:
                    self._texts.append(text)
                    self._news[-1] = replace(last, tokens=last.tokens + 1)
                else:
                    self._close_piece()
                    self._texts = [text]
                    self._news.append(Piece(kind, "", 1))
            case p.Prefill() | p.Loading() if type(last) is type(news):
                self._news[-1] = news
            case p.Ready() | p.Beat():
                pass
            case _:
                self._close_piece()
                self._news.append(news)  # type: ignore[arg-type]

    def _close_piece(self) -> None:
        last = self._news[-1] if self._news else None
        if isinstance(last, Piece) and self._texts:
            self._news[-1] = replace(last, text=last.text + "".join(self._texts))
        self._texts = []


class Bridge:
    """Runs an engine. Every method returns at once; answers come through ``frames``."""

    def __init__(self, make_engine: Callable[[], EngineLike], frames: Frames) -> None:
        self._make_engine = make_engine
        self._frames = frames
        self._engine: EngineLike | None = None
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._asides: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._running: Generating | None = None
        self._wants_cancel = False
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=_work, args=(jobs,), name=name, daemon=True)
            for jobs, name in ((self._jobs, "tui-engine"), (self._asides, "tui-asides"))
        ]
        for thread in self._threads:
            thread.start()

    # -- work ----------------------------------------------------------------------------------
    def open(self, request: p.OpenModel) -> None:
        """Open a model: Loading ..., Opened or Broke."""
        self._jobs.put(lambda: self._open(request))

    def generate(self, request: p.Generate) -> None:
        """Start an answer: Prefill ..., Piece ..., Done or Broke."""
        with self._lock:
            self._wants_cancel = False
        self._jobs.put(lambda: self._generate(request))

    def ask(self, what: str, request: p.Request) -> None:
        """Ask something on the side, also while an answer is written: Came."""
        self._asides.put(lambda: self._ask(what, request))

    def cancel(self) -> None:
        """Stop the answer, also one that has not begun."""
        self._steer(cancel=True)

    def end_thinking(self) -> None:
        """Begin the answer."""
        self._steer(end=True)

    def set_budget(self, tokens: int | None) -> None:
        """Change the budget of the running answer."""
        with self._lock:
            running = self._running
        if running is not None:
            self._asides.put(lambda: running.set_budget(tokens))

    def close(self, seconds: float = 3.0) -> None:
        """End the engine and the threads; waits no longer than ``seconds`` for each."""
        self.cancel()
        engine = self._engine
        if engine is not None:
            engine.stop(0.5)
        self._jobs.put(None)
        self._asides.put(None)
        for thread in self._threads:
            thread.join(seconds)

    # -- threads -------------------------------------------------------------------------------
    def _steer(self, *, cancel: bool = False, end: bool = False) -> None:
        with self._lock:
            self._wants_cancel = self._wants_cancel or cancel
            running = self._running
        if running is not None:
            # A pipe that is full must not hold the screen up.
            self._asides.put(running.end_thinking if end else running.cancel)

    def _ready_engine(self) -> EngineLike:
        if self._engine is None:
            self._engine = self._make_engine()
        return self._engine

    def _open(self, request: p.OpenModel) -> None:
        try:
            self._frames.add(self._ready_engine().open_model(request, self._frames.add))
        except LocalGlmError as error:
            self._frames.add(Broke("open", error))

    def _generate(self, request: p.Generate) -> None:
        try:
            generation = self._ready_engine().generate(request)
            with self._lock:
                self._running, wants_cancel = generation, self._wants_cancel
            if wants_cancel:
                generation.cancel()
            self._pass_on(generation)
        except LocalGlmError as error:
            self._frames.add(Broke("generate", error))
            if isinstance(error, WorkerError):
                self._restart()
        finally:
            with self._lock:
                self._running = None

    def _pass_on(self, events: Iterable[p.Event]) -> None:
        for event in events:
            self._frames.add(event)

    def _restart(self) -> None:
        """Any request brings the engine and the model back; the cheapest one does."""
        try:
            self._ready_engine().call(p.Stats(request=0))
            self._frames.add(Restarted())
        except LocalGlmError as error:
            self._frames.add(Broke("restart", error))

    def _ask(self, what: str, request: p.Request) -> None:
        try:
            self._frames.add(Came(what, self._ready_engine().call(request)))
        except LocalGlmError as error:
            self._frames.add(Came(what, error))


def _work(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
