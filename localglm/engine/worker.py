"""The engine process: frames on standard input and output, log on standard error.

Three threads: one reads requests, one reports signs of life while something runs, the main one
obeys. When the front end goes away the process ends at once.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import os
import queue
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, BinaryIO

from localglm.engine import protocol as p
from localglm.engine.control import Control, Status
from localglm.engine.failures import to_failed
from localglm.engine.frames import read_frame, write_frame
from localglm.engine.service import Service
from localglm.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.engine.model_port import Opener
    from localglm.engine.selftest import DeviceOpener

_BEAT_SECONDS = 0.5
_REST_SECONDS = 2.0


class Worker:
    """The threads of the process and what they share."""

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, opener: Opener, devices: DeviceOpener
    ) -> None:
        self._source = source
        self._sink = sink
        self._sink_lock = threading.Lock()
        self._queue: queue.SimpleQueue[tuple[p.Request, Control] | None] = queue.SimpleQueue()
        self._short: queue.SimpleQueue[p.Request] = queue.SimpleQueue()
        self._controls: dict[int, Control] = {}
        self._status = Status()
        self._service = Service(opener, self.send, self._status, self._answer_short, devices)

    def send(self, event: p.Event) -> None:
        """Write one event; without a reader there is nothing left to do."""
        try:
            with self._sink_lock:
                write_frame(self._sink, p.encode(event))
        except OSError:
            leave(0)

    def run(self) -> None:
        """Serve until the front end says so or goes away."""
        threading.Thread(target=self._listen, name="requests", daemon=True).start()
        threading.Thread(target=self._beat, name="beat", daemon=True).start()
        while True:
            try:
                task = self._queue.get(timeout=_REST_SECONDS)
            except queue.Empty:
                self._service.rest()
                continue
            if task is None:
                self._answer_short()
                continue
            request, control = task
            if isinstance(request, p.Shutdown):
                self._service.close()
                return
            self._service.obey(request, control)
            self._controls.pop(request.request, None)

    def _answer_short(self) -> None:
        """Answer what may come between the steps of a long request."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._service.answer(self._short.get_nowait(), Control())

    # -- the other threads ---------------------------------------------------------------------
    def _listen(self) -> None:
        try:
            while (payload := read_frame(self._source)) is not None:
                self._take(p.decode_request(payload))
        except WorkerError as error:
            self.send(to_failed(0, error))
            leave(WorkerError.exit_code)
        leave(0)

    def _take(self, request: p.Request) -> None:
        match request:
            case p.Hello():
                p.check_version(request.version)
                version = p.PROTOCOL_VERSION
                self.send(p.Ready(request=request.request, version=version, pid=os.getpid()))
            case p.Cancel() | p.EndThinking() | p.SetBudget():
                self._steer(request)
            case p.Memory() | p.Stats():
                self._short.put(request)
                self._queue.put(None)
            case _:
                budget = request.thinking_budget if isinstance(request, p.Generate) else None
                control = Control(budget)
                self._controls[request.request] = control
                self._queue.put((request, control))

    def _steer(self, request: p.Cancel | p.EndThinking | p.SetBudget) -> None:
        """Change a running request; one that has ended meanwhile needs nothing."""
        control = self._controls.get(request.target)
        if control is None:
            return
        match request:
            case p.Cancel():
                control.is_cancelled = True
            case p.EndThinking():
                control.wants_answer = True
            case p.SetBudget():
                control.thinking_budget = request.tokens

    def _beat(self) -> None:
        pause = threading.Event()
        while not pause.wait(_BEAT_SECONDS):
            status, running = self._status, self._status.request
            if running is not None:
                self.send(p.Beat(request=running, stage=status.stage, ticks=status.ticks))


def leave(code: int) -> None:
    """End the process from any thread, whatever the others do."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def take_over_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return private copies of standard input and output; what others print goes to the log."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def find_opener(name: str) -> Any:
    """Return the function ``module:function`` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the worker process."""
    parser = argparse.ArgumentParser(prog="localglm-engine")
    parser.add_argument("--opener", default="localglm.engine.opening:open_model_file")
    parser.add_argument("--devices", default="localglm.engine.devices:open_device")
    chosen = parser.parse_args(arguments)
    source, sink = take_over_pipes()
    faulthandler.enable(file=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Worker(source, sink, find_opener(chosen.opener), find_opener(chosen.devices)).run()
    leave(0)


if __name__ == "__main__":
    main()
