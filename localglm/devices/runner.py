"""Run probes side by side in child processes; whatever happens to one is a result.

A child that hangs or floods its output is killed with its own children. Nothing is raised.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

import localglm
from localglm.devices.record import ProbeResult, Status
from localglm.devices.windows_job import Job
from localglm.settings.load import environment

HANG_MARK = "Timeout ("
_SLACK_S = 0.8
_ANSWER_LIMIT = 4 << 20
_LOG_LIMIT = 64 << 10
_SAID_LINES = 6
_BOOT = (
    "import sys; sys.path[:0] = [p for p in {paths!r} if p not in sys.path]; "
    "from localglm.devices.child import main; main({arguments!r})"
)
_QUIET = {"MESA_SHADER_CACHE_DISABLE": "true", "CUDA_CACHE_DISABLE": "1"}


@dataclass(frozen=True, slots=True)
class Probe:
    """One question: its name, the function that answers it in the child, and how long it may take.

    ``variables`` are set for the child alone.
    """

    name: str
    target: str
    arguments: tuple[str, ...] = ()
    seconds: float = 4.5
    variables: Mapping[str, str] = field(default_factory=dict)


def run(probes: Sequence[Probe], search_paths: Sequence[str] = ()) -> dict[str, ProbeResult]:
    """Start every probe, wait for all and return their results by name."""
    running: list[_Running] = []
    with _no_caches() as variables:
        try:
            running.extend(_Running(probe, search_paths, variables) for probe in probes)
            return {one.probe.name: one.result() for one in running}
        finally:
            for one in running:
                one.end()


@contextlib.contextmanager
def _no_caches() -> Iterator[Mapping[str, str]]:
    """Send the caches drivers like to keep to a folder that is deleted afterwards."""
    try:
        folder = tempfile.mkdtemp(prefix="localglm-")
    except OSError:
        # Nothing can be written anywhere, so no driver will either.
        yield _QUIET
        return
    try:
        yield {**_QUIET, "XDG_CACHE_HOME": folder, "POCL_CACHE_DIR": folder}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Drain(threading.Thread):
    """Read a pipe to its end, so that its writer never waits; keep the first or last bytes."""

    def __init__(self, stream: IO[bytes], limit: int, *, keeps_start: bool) -> None:
        super().__init__(name="probe-drain", daemon=True)
        self.kept = bytearray()
        self.is_over = False
        self.end_time: float | None = None
        self._stream, self._limit, self._keeps_start = stream, limit, keeps_start
        self.start()

    def run(self) -> None:
        """Read until the other end closes, or until more came than any answer has."""
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(self._stream.fileno(), 1 << 16):
                if self._keeps_start and len(self.kept) + len(piece) > self._limit:
                    self.is_over = True
                    break
                self.kept += piece
                if not self._keeps_start:
                    del self.kept[: -self._limit]
        self.end_time = time.monotonic()
        with contextlib.suppress(OSError):
            self._stream.close()


class _Running:
    """One child and the two threads that read it."""

    def __init__(
        self, probe: Probe, search_paths: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self.probe = probe
        self._begin = time.monotonic()
        home = str(Path(localglm.__file__).resolve().parent.parent)
        arguments = [probe.name, probe.target, str(self._begin + probe.seconds), *probe.arguments]
        code = _BOOT.format(paths=[home, *search_paths], arguments=arguments)
        self._refusal = ""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment(), **variables, **probe.variables},
                start_new_session=True,
            )
        except OSError as error:
            self._refusal = str(error)
            return
        self._job = Job(int(getattr(self._process, "_handle", 0)))
        out, err = self._process.stdout, self._process.stderr
        assert out is not None
        assert err is not None
        self._answer = _Drain(out, _ANSWER_LIMIT, keeps_start=True)
        self._log = _Drain(err, _LOG_LIMIT, keeps_start=False)

    def result(self) -> ProbeResult:
        """Wait for the child, end what is left of it and judge what it said."""
        if self._process is None:
            return self._judged("failed", f"the process could not start: {self._refusal}")
        deadline = self._begin + self.probe.seconds + _SLACK_S
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(max(deadline - time.monotonic(), 0.0))
        # Processes it left behind may hold the pipes open.
        self._answer.join(_SLACK_S if code is not None else 0.0)
        self.end()
        self._answer.join(_SLACK_S)
        self._log.join(_SLACK_S)
        return self._read(code, self._log.kept.decode("utf-8", "replace"))

    def end(self) -> None:
        """Kill the child and the processes it started."""
        process = self._process
        if process is None:
            return
        if os.name == "posix":
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        self._job.end()
        with contextlib.suppress(OSError):
            process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SLACK_S)

    def _read(self, code: int | None, log: str) -> ProbeResult:
        if code is None or (code != 0 and HANG_MARK in log):
            place = _place_of_hang(log)
            return self._judged("hung", f"no answer within {self.probe.seconds:g} s{place}")
        if self._answer.is_over:
            return self._judged("garbled", f"it wrote more than {_ANSWER_LIMIT >> 20} MiB")
        if code != 0:
            return self._judged("crashed", f"{_ending(code)}{_tail(log)}")
        try:
            reply: dict[str, Any] = msgspec.json.decode(bytes(self._answer.kept), type=dict)
            status, said, data = reply["status"], reply["said"], reply["data"]
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError):
            start = bytes(self._answer.kept[:60]).decode("utf-8", "replace")
            return self._judged("garbled", f"its answer is no record: {start!r}")
        if status not in {"ok", "absent", "failed"} or not isinstance(data, dict):
            return self._judged("garbled", f"its answer has the status {status!r}")
        return self._judged(status, str(said), data)

    def _judged(
        self, status: Status, said: str, data: Mapping[str, Any] | None = None
    ) -> ProbeResult:
        # Another probe may have been waited for meanwhile, so the end of the pipe counts.
        end = self._answer.end_time if self._process is not None else None
        seconds = round((end or time.monotonic()) - self._begin, 3)
        return ProbeResult(self.probe.name, status, seconds, said, data or {})


def _ending(code: int) -> str:
    """Say in words how a child ended that did not end by itself."""
    if code < 0:
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"
    return f"it ended with code {code:#x}" if code > 255 else f"it ended with code {code}"


def _tail(log: str) -> str:
    """Return the telling lines of an error log: what a crash dump names, else the last ones."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    place = _place(lines)
    if place:
        return f" in {place}"
    return ": " + " | ".join(lines[-_SAID_LINES:]) if lines else ""


def _place_of_hang(log: str) -> str:
    place = _place([line.strip() for line in log.partition(HANG_MARK)[2].splitlines()])
    return f", waiting in {place}" if place else ""


def _place(lines: Sequence[str]) -> str:
    """Return the innermost line of a stack dump as ``file:line, function``."""
    for line in lines:
        if line.startswith("File ") and ", line " in line:
            file, _, rest = line.removeprefix("File ").partition(", line ")
            number, _, function = rest.partition(" in ")
            return f"{Path(file.strip(chr(34))).name}:{number}, {function}"
    return ""
