"""Open a device by back-end name. The only place that knows which concrete back ends exist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from localglm.backends.base import Device
from localglm.engine.cores import auto_threads, cores_here
from localglm.errors import DeviceError

BACKENDS = ("cpu", "reference")


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """What to open.

    ``threads`` None: the fast physical cores this process may use, within its quota; ``isa`` None:
    the best one here.
    """

    backend: str = "cpu"
    threads: int | None = None
    isa: str | None = None
    exact_activations: bool = False


def processors() -> int:
    """Return how many logical processors this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)  # only some systems can tell
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def default_threads() -> int:
    """Return how many threads to compute with: see ``engine.cores``."""
    return auto_threads(cores_here())


@contextmanager
def opened(choice: DeviceChoice) -> Iterator[Device]:
    """Open the chosen device and close it at the end.

    Raises: DeviceError for an unknown name or a device that cannot start.
    """
    device = open_device(choice)
    try:
        yield device
    finally:
        device.close()


def open_device(choice: DeviceChoice) -> Device:
    """Open the chosen device; the caller closes it.

    Raises: DeviceError for an unknown name or a device that cannot start.
    """
    if choice.backend == "cpu":
        from localglm.backends.cpu.device import CpuDevice  # noqa: PLC0415 - loads the library

        threads = default_threads() if choice.threads is None else choice.threads
        return CpuDevice(threads, choice.isa, choice.exact_activations)
    if choice.backend == "reference":
        from localglm.backends.reference.device import (  # noqa: PLC0415 - slow, rarely wanted
            ReferenceDevice,
        )

        return ReferenceDevice()
    raise DeviceError(
        f"there is no back end named {choice.backend!r}",
        why=f"this version computes on {', '.join(BACKENDS)}",
        try_="leave --backend out",
    )
