"""The number of computing threads that ``auto`` stands for."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import psutil

from localglm.engine.cores import linux, macos, windows


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores this process may use.

    ``physical`` counts a core with two hardware threads once. ``fast`` counts the physical cores of
    the fastest kind, None where all are alike or the system does not tell. ``quota`` is the
    processor time the system grants, in cores, None without a limit. ``nodes`` are memory nodes.
    """

    logical: int
    physical: int
    fast: int | None = None
    quota: float | None = None
    nodes: int = 1


def auto_threads(cores: Cores) -> int:
    """Return the number of threads to compute with.

    Products read memory as fast as the cores can; a second thread on a core adds nothing, a slow
    core makes the others wait at the end of every op, and threads beyond a quota are stopped in the
    middle of one.
    """
    threads = cores.physical if cores.fast is None else cores.fast
    if cores.quota is not None:
        threads = min(threads, int(cores.quota))
    return max(1, min(threads, cores.logical))


def cores_here() -> Cores:
    """Return the cores of this process."""
    if platform.system() == "Linux":
        return _linux(frozenset(os.sched_getaffinity(0)))
    logical = os.cpu_count() or 1
    physical = psutil.cpu_count(logical=False) or logical
    if platform.system() == "Windows":
        allowed = len(psutil.Process().cpu_affinity() or ()) or logical
        return Cores(allowed, physical, windows.fast_cores())
    return Cores(logical, physical, macos.fast_cores())


def _linux(allowed: frozenset[int]) -> Cores:
    topology = linux.topology(allowed)
    return Cores(
        logical=len(allowed),
        physical=topology.physical,
        fast=topology.fast,
        quota=linux.quota(),
        nodes=topology.nodes,
    )
