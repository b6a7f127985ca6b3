"""The engine process as its parent sees it, and why it ended."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

import localglm
from localglm.engine.checks import pack
from localglm.engine.frames import read_frame, write_frame
from localglm.engine.protocol import decode_event
from localglm.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from localglm.engine.protocol import Event, Request

_LOG_LINES = 200
_END_SECONDS = 2.0
_PAGE_ERROR = 0xC0000006
_ACCESS_VIOLATION = 0xC0000005
_CRASH_DUMPS = ("Fatal Python error: ", "Windows fatal exception: ")
_BOOT = (
    "import sys; sys.path[:0] = [p for p in {paths!r} if p not in sys.path]; "
    "from localglm.engine.worker import main; main({arguments!r})"
)


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How the process starts.

    ``opener`` and ``devices`` are ``module:function``: what opens a model, and what opens a device
    for the self-test. ``search_paths`` are folders for its module path.
    """

    opener: str = "localglm.engine.opening:open_model_file"
    search_paths: tuple[str, ...] = ()
    devices: str = "localglm.engine.devices:open_device"

    def arguments(self) -> list[str]:
        """Return the argument list; the working folder is never on the module path."""
        home = str(Path(localglm.__file__).resolve().parent.parent)
        arguments = ["--opener", self.opener, "--devices", self.devices]
        code = _BOOT.format(paths=[home, *self.search_paths], arguments=arguments)
        return [sys.executable, "-P", "-c", code]


class WorkerProcess:
    """One running engine process with its three threads.

    ``on_event`` receives every event and ``on_end`` the reason the process ended, both on the
    reading thread.
    """

    def __init__(
        self,
        command: WorkerCommand,
        on_event: Callable[[Event], None],
        on_end: Callable[[WorkerError], None],
    ) -> None:
        self._on_event = on_event
        self._on_end = on_end
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._log: deque[str] = deque(maxlen=_LOG_LINES)
        self._child = _spawn(command)
        self._threads = [
            threading.Thread(target=work, name=f"engine-{work.__name__.strip('_')}", daemon=True)
            for work in (self._read, self._write, self._keep_log)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._child.poll() is None

    def log(self) -> list[str]:
        """Return the last lines the process wrote to its log."""
        return list(self._log)

    def send(self, request: Request) -> None:
        """Queue a request; never waits, and may be called from a signal handler.

        Raises: UsageError for text that is not Unicode, RequestError for a request too large.
        """
        self._outbox.put(pack(request))

    def kill(self) -> None:
        """End the process now."""
        with contextlib.suppress(OSError):
            self._child.kill()

    def close(self, seconds: float) -> None:
        """Close the pipe, wait for the end, and kill what does not end in time."""
        self._outbox.put(None)
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self._child.wait(_END_SECONDS)
        self._outbox.put(None)
        streams = (self._child.stdout, self._child.stdin, self._child.stderr)
        for thread, stream in zip(self._threads, streams, strict=True):
            if thread is not threading.current_thread():
                thread.join(_END_SECONDS)
                # While another process holds the pipe its thread waits, and closing would too.
                if thread.is_alive():
                    continue
            with contextlib.suppress(OSError):
                _pipe(stream).close()

    # -- threads -------------------------------------------------------------------------------
    def _read(self) -> None:
        stream = _pipe(self._child.stdout)
        damage: WorkerError | None = None
        try:
            while (payload := read_frame(stream)) is not None:
                self._on_event(decode_event(payload))
        except WorkerError as error:
            damage = error
        except (OSError, ValueError) as error:
            damage = WorkerError(
                "the engine's pipe broke", why=str(error), try_="repeat the request"
            )
        ended = self._wait_for_end()
        self._on_end(damage if damage is not None and ended in {None, 0} else self.why_ended(ended))

    def _wait_for_end(self) -> int | None:
        """Return the exit status; None when it closed its pipe and had to be killed."""
        try:
            return self._child.wait(_END_SECONDS / 4)
        except subprocess.TimeoutExpired:
            self.kill()
            self._child.wait(_END_SECONDS)
            return None

    def _write(self) -> None:
        stream = _pipe(self._child.stdin)
        with contextlib.suppress(OSError, ValueError):
            while (payload := self._outbox.get()) is not None:
                write_frame(stream, payload)
        with contextlib.suppress(OSError, ValueError):
            stream.close()

    def _keep_log(self) -> None:
        stream = _pipe(self._child.stderr)
        with contextlib.suppress(OSError, ValueError):
            for line in iter(stream.readline, b""):
                self._log.append(line.decode("utf-8", "replace").rstrip())

    def why_ended(self, status: int | None) -> WorkerError:
        """Explain an exit status in words."""
        self._threads[2].join(_END_SECONDS / 4)
        said = last_words(self._log)
        quoted = f'; its log ends: "{said[:200]}"' if said else ""
        what, why = explain_exit(status)
        return WorkerError(
            what, why=why + quoted, try_="repeat the request; the engine is started again"
        )


def last_words(log: Iterable[str]) -> str:
    """Return the last line the program itself wrote; the interpreter's crash dump says nothing."""
    said = ""
    for line in log:
        if line.startswith(_CRASH_DUMPS):
            break
        said = line if line.strip() else said
    return said


def explain_exit(status: int | None) -> tuple[str, str]:
    """Return what happened and why, for an exit status as ``subprocess`` gives it."""
    if status is None:
        return "the engine process closed its pipe and was ended", "it did not end by itself"
    unsigned = status & 0xFFFFFFFF
    is_bus_error = hasattr(signal, "SIGBUS") and status == -int(signal.SIGBUS)
    if is_bus_error or unsigned == _PAGE_ERROR:
        name = "SIGBUS" if is_bus_error else "EXCEPTION_IN_PAGE_ERROR"
        return (
            "a page of the model file could not be read (truncated or removed)",
            f"the engine process died with {name}",
        )
    if unsigned == _ACCESS_VIOLATION:
        return "the engine process died", "it touched memory that is not its own (0xC0000005)"
    if status < 0:
        return "the engine process died", f"signal {-status} ({_signal_name(-status)}) ended it"
    return f"the engine process ended with exit code {status}", "it was not asked to end"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return "unknown"
    if name == "SIGKILL":
        return "SIGKILL: by a user or by the system when memory ran out"
    return name


def _spawn(command: WorkerCommand) -> subprocess.Popen[bytes]:
    """Start the process out of reach of the terminal's Ctrl-C."""
    pipe = subprocess.PIPE
    try:
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
            return subprocess.Popen(
                command.arguments(), stdin=pipe, stdout=pipe, stderr=pipe, creationflags=flags
            )
        return subprocess.Popen(
            command.arguments(), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        raise WorkerError(
            "the engine process could not be started",
            why=str(error),
            try_="check that this Python installation is complete and memory is free",
        ) from error


def _pipe(stream: IO[bytes] | None) -> BinaryIO:
    return cast("BinaryIO", stream)
