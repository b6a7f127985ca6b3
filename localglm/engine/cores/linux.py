"""Cores and processor time of a Linux process, from sysfs and control groups."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

SYSFS = Path("/sys/devices")
CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Topology:
    """Physical cores, those of the fastest kind (None: all alike), and memory nodes in use."""

    physical: int
    fast: int | None
    nodes: int


def topology(allowed: AbstractSet[int], root: Path = SYSFS) -> Topology:
    """Return what ``allowed`` logical processors amount to."""
    cores = {_core(cpu, root) for cpu in allowed}
    fast = _fast(allowed, root)
    return Topology(
        physical=len(cores),
        fast=None if fast is None else len({_core(cpu, root) for cpu in fast}),
        nodes=max(1, sum(bool(node & allowed) for node in _nodes(root))),
    )


def cpu_list(text: str) -> frozenset[int]:
    """Return the numbers of a list such as ``0-3,8``."""
    found: set[int] = set()
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if low.strip():
            found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


def quota(membership: Path = MEMBERSHIP, root: Path = CGROUPS) -> float | None:
    """Return the processor time granted by control groups, in cores, or None without a limit.

    The least of the process's group and those above it counts, in both versions.
    """
    limits: list[float] = []
    for line in (_text(membership) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            for base in (root, root / "unified"):
                limits += [x for g in _upwards(base, path) if (x := _second(g)) is not None]
        elif "cpu" in controllers.split(","):
            for base in (root / controllers, root / "cpu"):
                limits += [x for g in _upwards(base, path) if (x := _first(g)) is not None]
    return min(limits, default=None)


def _upwards(base: Path, path: str) -> list[Path]:
    """Return the group and all above it; a container sees its own group as the root."""
    steps = [s for s in path.split("/") if s and s != ".."]
    return [base.joinpath(*steps[:n]) for n in range(len(steps), -1, -1)]


def _second(group: Path) -> float | None:
    words = (_text(group / "cpu.max") or "max").split()
    return None if words[0] == "max" else int(words[0]) / int(words[1])


def _first(group: Path) -> float | None:
    granted, period = _text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us")
    if granted is None or period is None or int(granted) <= 0:
        return None
    return int(granted) / int(period)


def _core(cpu: int, root: Path) -> tuple[str, str]:
    at = root / f"system/cpu/cpu{cpu}/topology"
    package, core = _text(at / "physical_package_id"), _text(at / "core_id")
    return (package or "", core if core is not None else f"cpu{cpu}")


def _fast(allowed: AbstractSet[int], root: Path) -> AbstractSet[int] | None:
    """Return the processors of the fastest kind, or None when there is only one kind."""
    slow = _text(root / "cpu_atom/cpus")
    if slow is not None:
        fast = allowed - cpu_list(slow)
        return fast if 0 < len(fast) < len(allowed) else None
    power = {cpu: _text(root / f"system/cpu/cpu{cpu}/cpu_capacity") for cpu in allowed}
    known = {cpu: int(value) for cpu, value in power.items() if value is not None}
    if len(known) < len(allowed) or len(set(known.values())) < 2:
        return None
    # Of three kinds the middle one works with the fastest: it has more than half its power.
    top = max(known.values())
    fast = {cpu for cpu, value in known.items() if 2 * value > top}
    return fast if len(fast) < len(allowed) else None


def _nodes(root: Path) -> list[frozenset[int]]:
    lists = sorted((root / "system/node").glob("node[0-9]*/cpulist"))
    return [cpu_list(text) for path in lists if (text := _text(path)) is not None]


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
