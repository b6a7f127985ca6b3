"""How much memory this process may hold in all: every limit there is, each with its reason.

Swap is never counted on: a model that is swapped is slower than one read from its file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import psutil

from localglm.engine.memory_commit import free_commit
from localglm.engine.memory_groups import GroupMemory, group_memory
from localglm.engine.own_memory import anonymous_bytes
from localglm.units import size_text

_SHARE = 32
_LEAST_RESERVE = 256 << 20
_MOST_RESERVE = 2 << 30


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Bytes this process may hold in all, what sets the limit, and what would raise it.

    ``counts_mapped``: pages of mapped files count too, not only memory of its own.
    """

    nbytes: int
    reason: str
    remedy: str
    counts_mapped: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """What the system says now; None where it sets no such limit."""

    total: int
    available: int
    own: int
    groups: tuple[GroupMemory, ...] = ()
    free_address_space: int | None = None
    free_data: int | None = None
    free_commit: int | None = None

    @property
    def reserve(self) -> int:
        """Bytes left to the system and to other programs."""
        return reserve_of(self.total)


def reserve_of(total: int) -> int:
    """Return what is left alone of ``total`` bytes: a 32nd, from 256 MiB to 2 GiB."""
    return min(max(total // _SHARE, min(_LEAST_RESERVE, total // 4)), _MOST_RESERVE)


def group_reserve(limit: int) -> int:
    """Return what is left alone in a control group, which is there to be used: half as much."""
    return reserve_of(limit) // 2


def read_memory() -> Reading:
    """Ask the system."""
    memory = psutil.virtual_memory()
    return Reading(
        total=int(memory.total),
        available=int(memory.available),
        own=anonymous_bytes(),
        groups=tuple(group_memory()) if sys.platform == "linux" else (),
        free_address_space=_free("RLIMIT_AS", "vms"),
        free_data=_free("RLIMIT_DATA", "data"),
        free_commit=free_commit(),
    )


def _free(limit: str, used: str) -> int | None:
    """Return what a resource limit of this process leaves."""
    if sys.platform != "linux":  # elsewhere they are not there, or not kept to
        return None
    process = psutil.Process()
    soft, _ = process.rlimit(getattr(psutil, limit))
    if soft == psutil.RLIM_INFINITY:
        return None
    return max(0, int(soft) - int(getattr(process.memory_info(), used)))


def ceilings(reading: Reading, wanted: int | None) -> list[Ceiling]:
    """Return every limit; ``wanted`` is the user's own."""
    r = reading
    out = [
        Ceiling(
            r.available + r.own - r.reserve,
            f"{size_text(r.available)} of {size_text(r.total)} are available,"
            f" {size_text(r.reserve)} of which are left to the system",
            "close other programs",
        )
    ]
    for group in r.groups:
        kept = group_reserve(group.limit)
        reason = f"the control group {group.group} is limited to {size_text(group.limit)}"
        out.append(Ceiling(group.free + r.own - kept, reason, "raise the limit of the group"))
    if wanted is not None:
        reason = f"the setting engine.memory is {size_text(wanted)}"
        out.append(Ceiling(wanted, reason, "a larger --memory"))
    named = (
        (r.free_address_space, "the address space is limited (RLIMIT_AS)", "ulimit -v unlimited"),
        (r.free_data, "the data segment is limited (RLIMIT_DATA)", "ulimit -d unlimited"),
        (r.free_commit, "the commit limit of Windows leaves no more", "a larger page file"),
    )
    out += [
        Ceiling(free + r.own, reason, remedy, counts_mapped=False)
        for free, reason, remedy in named
        if free is not None
    ]
    return [replace(limit, nbytes=max(0, limit.nbytes)) for limit in out]
