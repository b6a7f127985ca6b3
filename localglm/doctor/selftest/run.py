"""Run a self-test in an engine process of its own; whatever happens to that process is a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from localglm.doctor.selftest.record import Card, Result, SelfTest, Status, Step, Verdict
from localglm.engine import protocol as p
from localglm.engine.client import Engine, EngineOptions, Generation
from localglm.engine.process import WorkerCommand
from localglm.errors import LocalGlmError, UsageError, WorkerError


@dataclass(frozen=True, slots=True)
class Options:
    """How the engine process is run; ``hang_seconds`` without a finished case end it."""

    command: WorkerCommand = field(default_factory=WorkerCommand)
    hang_seconds: float = 60.0
    threads: int | None = None
    stop: Event = field(default_factory=Event)


def run(
    level: p.TestLevel,
    backend: str,
    device: Card,
    progress: Callable[[Step], None] | None = None,
    options: Options | None = None,
) -> SelfTest:
    """Test every op of ``backend`` on ``device``.

    Setting ``options.stop`` ends the test after the case that runs.
    Raises: UsageError for a back end or device that cannot be asked for.
    """
    chosen, start = options or Options(), time.monotonic()
    watch = _Watch(progress or (lambda _step: None), chosen.stop)
    request = p.SelfTest(
        request=0, level=level, backend=backend, device=device.device, threads=chosen.threads
    )
    fault = ""
    try:
        with Engine(EngineOptions(chosen.command, hang_seconds=chosen.hang_seconds)) as engine:
            watch.follow(engine.self_test(request))
    except UsageError:
        raise
    except LocalGlmError as error:
        fault = ": ".join(part for part in (error.what, error.why) if part)
        watch.lose(error, fault)
    verdict = watch.verdict(fault)
    return SelfTest(
        level, backend, device, verdict, tuple(watch.results), time.monotonic() - start, fault,
        _advice(backend, device, watch.results) if verdict == "failed" else "",
    )  # fmt: skip


class _Watch:
    """Collects results and knows which part runs."""

    def __init__(self, progress: Callable[[Step], None], stop: Event) -> None:
        self._progress = progress
        self._stop = stop
        self._running: p.Testing | None = None
        self._is_complete = False
        self.results: list[Result] = []

    def follow(self, job: Generation) -> None:
        for event in job:
            if isinstance(event, p.Testing):
                self._running = event
                self._progress(Step(event.name, event.done, event.total))
            elif isinstance(event, p.Tested):
                self._running = None
                self.results.append(_result(event))
            elif isinstance(event, p.SelfTested):
                self._is_complete = event.is_complete
            if self._stop.is_set():
                job.cancel()

    def lose(self, error: LocalGlmError, fault: str) -> None:
        """Note the part in which the process was lost."""
        lost = self._running
        if lost is not None and isinstance(error, WorkerError):
            status: Status = "hung" if "no progress" in error.what else "crashed"
            self.results.append(Result(lost.part, lost.name, status, 0, None, "", 0.0, fault))

    def verdict(self, fault: str) -> Verdict:
        if fault or any(r.status != "passed" for r in self.results):
            return "failed"
        return "passed" if self._is_complete else "stopped"


def _result(event: p.Tested) -> Result:
    return Result(
        event.part, event.name, "passed" if event.passed else "failed", event.cases, event.worst,
        event.worst_case, event.seconds, event.why,
    )  # fmt: skip


def _advice(backend: str, card: Card, results: list[Result]) -> str:
    if backend in ("cpu", "reference"):
        again = "if it fails again, report it with what localglm backends --record FILE writes"
        return f"reinstall localglm; {again}"
    if any(r.status in ("crashed", "hung") for r in results):
        return f"update the driver of {card.name} (now {card.driver}), or use --backend cpu"
    return f"use --backend cpu, then update the driver of {card.name} (now {card.driver})"
