"""The self-test as it runs by itself: once after an installation or a change of driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from localglm.doctor.selftest.record import Card, SelfTest, Step
from localglm.doctor.selftest.remember import keep, remembered
from localglm.doctor.selftest.run import Options, run


def once(
    backend: str,
    device: Card,
    progress: Callable[[Step], None] | None = None,
    options: Options | None = None,
    folder: Path | None = None,
) -> SelfTest:
    """Return the kept result when it passed, else run a quick test and keep what it found.

    A failure is tested again, since a device may have been busy or short of memory.
    Raises: UsageError for a back end or device that cannot be asked for.
    """
    before = remembered(backend, device, folder)
    if before is not None and before.verdict == "passed":
        return before
    test = run("quick", backend, device, progress, options)
    keep(test, folder)
    return test
