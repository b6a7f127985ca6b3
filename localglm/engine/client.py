"""The engine as a front end uses it; started again by itself after a crash.

Front ends import this module and ``engine.protocol``; neither numpy nor the model is imported here.
"""

from __future__ import annotations

import itertools
import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from localglm.engine import protocol as p
from localglm.engine.link import Inbox, Link, Wait
from localglm.engine.process import WorkerCommand, WorkerProcess
from localglm.errors import LocalGlmError, WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

_E = TypeVar("_E")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How the engine process is run. ``hang_seconds`` without any progress end it."""

    command: WorkerCommand = field(default_factory=WorkerCommand)
    start_seconds: float = 60.0
    hang_seconds: float = 120.0
    stop_seconds: float = 5.0


class Engine:
    """A handle on the engine process. Start it with ``with Engine() as engine``."""

    def __init__(self, options: EngineOptions | None = None) -> None:
        self.options = options or EngineOptions()
        self._link = Link()
        self._ids = itertools.count(1)
        self._lock = threading.RLock()
        self._wanted: p.OpenModel | None = None
        self._is_stopped = False
        self.restarts = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop(self.options.stop_seconds if kind is None else 0.2)

    # -- process -------------------------------------------------------------------------------
    def start(self) -> None:
        """Start the process unless it runs, and shake hands.

        Raises: WorkerError when it does not start or speaks another version.
        """
        with self._lock:
            self._is_stopped = False
            if self._link.is_usable:
                return
            if self._link.process is not None:
                self.restarts += 1
                self._link.process.close(0)
            link = Link()
            link.process = WorkerProcess(self.options.command, link.on_event, link.on_end)
            self._link = link
            hello = p.Hello(request=next(self._ids), version=p.PROTOCOL_VERSION)
            limit = self.options.start_seconds
            ready = self._finish(self._send(link, hello), limit, None)
            if not isinstance(ready, p.Ready):
                raise _unexpected(ready)
            p.check_version(ready.version)

    def stop(self, seconds: float | None = None) -> None:
        """End the process, by force after ``seconds``; a running request fails."""
        with self._lock:
            self._is_stopped = True
            link, self._link = self._link, Link()
            if link.process is None:
                return
            if link.is_usable:
                link.process.send(p.Shutdown(request=next(self._ids)))
            link.process.close(self.options.stop_seconds if seconds is None else seconds)

    @property
    def pid(self) -> int | None:
        """Process id of the engine; None when it does not run."""
        process = self._link.process
        return process.pid if process is not None and process.is_alive else None

    def log(self) -> list[str]:
        """Return the last lines of the engine's log."""
        return [] if self._link.process is None else self._link.process.log()

    # -- model ---------------------------------------------------------------------------------
    def open_model(
        self, request: p.OpenModel, on_progress: Callable[[p.Loading], None] | None = None
    ) -> p.Opened:
        """Open a model; it is opened again by itself after a crash.

        Raises: ModelFileError, UsageError, DeviceError, MemoryShortError, WorkerError.
        """
        self._wanted = None
        self.start()
        opened = self._open(self._link, request, on_progress)
        self._wanted = request
        return opened

    def account(self, request: p.OpenModel) -> p.AccountReply:
        """Return what opening a model would take; nothing is loaded, an open one is closed.

        Raises: as ``open_model``.
        """
        self._wanted = None
        return _expect(p.AccountReply, self.call(p.Account(request=0, open=request)))

    def close_model(self) -> None:
        """Free the model."""
        self._wanted = None
        self.call(p.CloseModel(request=0))

    # -- requests ------------------------------------------------------------------------------
    def generate(self, request: p.Generate) -> Generation:
        """Start a request; iterate the result for its events.

        Raises: WorkerError or ModelFileError when a crashed engine cannot come back.
        """
        return Generation(self, self._begin(request))

    def call(self, request: p.Request) -> p.Event:
        """Send a request with a single answer and return it; ``request`` numbers are given here.

        Raises: the error the engine reports.
        """
        return self._finish(self._begin(request), self.options.hang_seconds, None)

    def self_test(self, request: p.SelfTest) -> Generation:
        """Start a self-test; iterate the result for its events, the last a ``SelfTested``.

        Raises: WorkerError when the engine cannot be started.
        """
        return Generation(self, self._begin(request))

    def plan(self, prompt: p.Prompt, session: str = "main") -> p.PlanReply:
        """Say what a prompt would cost before it is sent."""
        return _expect(p.PlanReply, self.call(p.Plan(request=0, prompt=prompt, session=session)))

    def snapshot(self, session: str = "main") -> str:
        """Keep the state of a session; returns its handle."""
        reply = _expect(p.Reply, self.call(p.Snapshot(request=0, session=session)))
        if reply.handle is None:
            raise _unexpected(reply)
        return reply.handle

    def restore(self, handle: str) -> None:
        """Set a session back to a kept state."""
        self.call(p.Restore(request=0, handle=handle))

    def fork(self, session: str, target: str) -> None:
        """Copy a session under another name."""
        self.call(p.Fork(request=0, session=session, target=target))

    def drop(self, *, handle: str | None = None, session: str | None = None) -> None:
        """Forget a kept state or a session."""
        self.call(p.Drop(request=0, handle=handle, session=session))

    def memory(self) -> p.MemoryReply:
        """Return the memory map."""
        return _expect(p.MemoryReply, self.call(p.Memory(request=0)))

    def stats(self) -> p.StatsReply:
        """Return the counters since the model was opened."""
        return _expect(p.StatsReply, self.call(p.Stats(request=0)))

    # -- plumbing ------------------------------------------------------------------------------
    def _begin(self, request: p.Request) -> Wait:
        with self._lock:
            if self._is_stopped:
                raise WorkerError(
                    "the engine was stopped", why="stop() was called", try_="call start() first"
                )
            self.start()
            if self._wanted is not None and not self._link.is_open:
                self._open(self._link, self._wanted, None)
            numbered = msgspec.structs.replace(request, request=next(self._ids))
            return self._send(self._link, numbered)

    def _open(
        self, link: Link, request: p.OpenModel, on_progress: Callable[[p.Loading], None] | None
    ) -> p.Opened:
        numbered = msgspec.structs.replace(request, request=next(self._ids))

        def show(event: p.Event) -> None:
            if on_progress is not None and isinstance(event, p.Loading):
                on_progress(event)

        link.is_open = False
        answer = self._finish(self._send(link, numbered), self.options.hang_seconds, show)
        link.is_open = True
        return _expect(p.Opened, answer)

    def _send(self, link: Link, request: p.Request) -> Wait:
        inbox: Inbox = queue.SimpleQueue()
        link.inboxes[request.request] = inbox
        if link.end is not None:
            inbox.put(link.end)
        elif link.process is not None:
            link.process.send(request)
        return Wait(link, request.request, inbox)

    def _finish(self, wait: Wait, limit: float, show: Callable[[p.Event], None] | None) -> p.Event:
        for event in wait.events(limit):
            if isinstance(event, p.FINAL_EVENTS):
                return event
            if show is not None:
                show(event)
        raise WorkerError("the engine gave no answer", try_="repeat the request")


class Generation:
    """One running request. Iterating yields its events; ``done`` is set when it has ended."""

    def __init__(self, engine: Engine, wait: Wait) -> None:
        self._engine = engine
        self._wait = wait
        self._is_over = False
        self.done: p.Done | None = None

    def __iter__(self) -> Iterator[p.Event]:
        """Yield events to the final ``Done``.

        Raises: the error that ended the request.
        """
        try:
            for event in self._wait.events(self._engine.options.hang_seconds):
                if isinstance(event, p.Done):
                    self.done = event
                yield event
            self._is_over = True
        except LocalGlmError:
            self._is_over = True
            raise
        finally:
            if not self._is_over:
                self.cancel()

    def cancel(self) -> None:
        """Ask for the end within one step; may be called from any thread or a signal handler."""
        self._steer(p.Cancel(request=0, target=self._wait.request))

    def end_thinking(self) -> None:
        """Ask for the answer now."""
        self._steer(p.EndThinking(request=0, target=self._wait.request))

    def set_budget(self, tokens: int | None) -> None:
        """Change the thinking budget."""
        self._steer(p.SetBudget(request=0, target=self._wait.request, tokens=tokens))

    def _steer(self, request: p.Request) -> None:
        process = self._wait.link.process
        if process is not None and self._wait.link.end is None:
            process.send(request)


def _expect(kind: type[_E], event: p.Event) -> _E:
    if not isinstance(event, kind):
        raise _unexpected(event)
    return event


def _unexpected(event: p.Event) -> WorkerError:
    return WorkerError(
        f"the engine answered with {type(event).__name__}",
        why="it was not asked for that",
        try_="start localglm again",
    )
