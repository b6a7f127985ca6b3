"""The parent's side of template rendering: one child process kept alive, and its limits.

A single expression can hold the interpreter for hours or ask for terabytes, so limits inside the
same process do not hold. The child is killed at the limit and a new one serves the next request.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

import psutil

from localglm.errors import WorkerError

_CHILD = Path(__file__).with_name("render_child.py")
_MIB = 1024 * 1024
_LARGEST_REPLY = 1024 * _MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What one rendering may use; the shares grow with the size of the conversation.

    A template can do nothing but compute, so processor time is the measure; the wall time only
    bounds it on a machine that is busy with something else.
    """

    start_seconds: float = 20.0
    processor_seconds: float = 0.7
    wall_seconds: float = 1.2
    memory_bytes: int = 64 * _MIB
    output_characters: int = _MIB

    def for_request(self, size: int) -> Limits:
        """Return the limits for a conversation of ``size`` bytes."""
        seconds = size / (4 * _MIB)
        return Limits(
            self.start_seconds,
            self.processor_seconds + seconds,
            self.wall_seconds + 2 * seconds,
            self.memory_bytes + 32 * size,
            self.output_characters + 4 * size,
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """Why no text came back: one of the child's error names, or time, memory, crash."""

    kind: str
    message: str


class RenderProcess:
    """Renders templates in a child process, one at a time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def start(self) -> None:
        """Start the child process unless it runs, so that its start counts against no rendering.

        Raises: WorkerError when it cannot be started.
        """
        with self._lock:
            self._running()

    def render(self, source: str, variables: object) -> str | Failure:
        """Render the template ``source``.

        Raises: WorkerError when the child process cannot be started.
        """
        limits = self._limits.for_request(len(json.dumps(variables)))
        request = {
            "source": source,
            "variables": variables,
            "memory": limits.memory_bytes,
            "output": limits.output_characters,
            # The child's own watchdog only has to end it when the parent no longer can.
            "seconds": limits.wall_seconds + 2.0,
        }
        with self._lock:
            reply = self._running().ask(request, limits)
            if isinstance(reply, Failure) and reply.kind == "crash":
                # Whoever ended the child (the system, short of memory) meant no harm to the text.
                self.close()
                reply = self._running().ask(request, limits)
            if isinstance(reply, Failure) or reply.get("error") == "memory":
                self.close()
        if isinstance(reply, Failure):
            return reply
        if "error" in reply:
            return Failure(str(reply["error"]), str(reply["message"]))
        return str(reply["text"])

    def _running(self) -> _Child:
        if self._child is None or not self._child.is_alive():
            self._child = _Child(self._limits.start_seconds)
        return self._child

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.close()
            self._child = None


@dataclass(frozen=True, slots=True)
class _Usage:
    seconds: float
    resident: int


class _Child:
    """One running child: its pipes, and a thread that waits for its replies."""

    def __init__(self, start_seconds: float) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise _not_started(str(error)) from None
        self._watched = psutil.Process(self._process.pid)
        self._stop = weakref.finalize(self, _end, self._process)
        self._replies: SimpleQueue[bytes | None] = SimpleQueue()
        assert self._process.stdout is not None
        threading.Thread(
            target=_read_replies,
            args=(self._process.stdout, self._replies),
            name="localglm-template-replies",
            daemon=True,
        ).start()
        if isinstance(reply := self._wait(Limits(wall_seconds=start_seconds), None), Failure):
            self.close()
            raise _not_started(f"it did not answer within {start_seconds:g} s ({reply.kind})")

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, body: dict[str, object], limits: Limits) -> dict[str, Any] | Failure:
        data = json.dumps(body).encode("ascii")
        assert self._process.stdin is not None
        start = self._usage()
        try:
            self._process.stdin.write(len(data).to_bytes(8, "little") + data)
            self._process.stdin.flush()
        except OSError:
            return Failure("crash", "")
        return self._wait(limits, start)

    def close(self) -> None:
        self._stop()

    def _wait(self, limits: Limits, start: _Usage | None) -> dict[str, Any] | Failure:
        end = time.monotonic() + limits.wall_seconds
        while True:
            try:
                data = self._replies.get(timeout=0.01)
            except Empty:
                if time.monotonic() > end:
                    return Failure("time", f"{limits.wall_seconds:.1f} s")
                if start is None:
                    continue
                used = self._usage()
                if used.seconds - start.seconds > limits.processor_seconds:
                    return Failure("time", f"{limits.processor_seconds:.1f} s of processor time")
                # Where the system limits no address space, watching is the limit.
                if used.resident - start.resident > limits.memory_bytes:
                    return Failure("memory", "")
                continue
            if data is None:
                return Failure("crash", "")
            reply: dict[str, Any] = json.loads(data)
            return reply

    def _usage(self) -> _Usage:
        try:
            with self._watched.oneshot():
                times = self._watched.cpu_times()
                return _Usage(times.user + times.system, self._watched.memory_info().rss)
        except psutil.Error:
            return _Usage(0.0, 0)


def _not_started(why: str) -> WorkerError:
    return WorkerError(
        "the process that renders chat templates could not be started",
        why=why,
        try_="start localglm again; if it stays, free memory or install it again",
    )


def _read_replies(stream: IO[bytes], replies: SimpleQueue[bytes | None]) -> None:
    with stream:
        while len(head := stream.read(8)) == 8:
            size = int.from_bytes(head, "little")
            if size > _LARGEST_REPLY:
                break
            data = stream.read(size)
            if len(data) < size:
                break
            replies.put(data)
        replies.put(None)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        try:
            process.stdin.close()
        except OSError:
            return
