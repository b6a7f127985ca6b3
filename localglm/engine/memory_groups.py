"""Memory that control groups of Linux leave to this process, in both versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_NO_LIMIT = 1 << 60  # what version 1 states without one is a little less than 2^63


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """The limit of one control group, and what it may still take; cached file pages are free."""

    group: Path
    limit: int
    free: int


def group_memory(membership: Path = _MEMBERSHIP, root: Path = _ROOT) -> list[GroupMemory]:
    """Return every limit above this process: of its own group and of those around it."""
    found = (_second, _first)
    return [
        memory
        for version, group in _groups(membership, root)
        if (memory := found[version == 1](group)) is not None
    ]


def _groups(membership: Path, root: Path) -> Iterator[tuple[int, Path]]:
    for line in (_text(membership) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        # A container sees its own group as the root, whatever the path says.
        steps = [step for step in path.split("/") if step and step != ".."]
        if not controllers:
            places = [(2, root), (2, root / "unified")]
        elif "memory" in controllers.split(","):
            places = [(1, root / "memory")]
        else:
            continue
        for version, base in places:
            for count in range(len(steps), -1, -1):
                yield version, base.joinpath(*steps[:count])


def _second(group: Path) -> GroupMemory | None:
    limit, used = _text(group / "memory.max"), _text(group / "memory.current")
    if limit is None or used is None or limit == "max":
        return None
    return _memory(group, int(limit), int(used), ("active_file", "inactive_file"))


def _first(group: Path) -> GroupMemory | None:
    limit, used = _text(group / "memory.limit_in_bytes"), _text(group / "memory.usage_in_bytes")
    if limit is None or used is None or int(limit) >= _NO_LIMIT:
        return None
    names = ("total_active_file", "total_inactive_file")
    return _memory(group, int(limit), int(used), names)


def _memory(group: Path, limit: int, used: int, reclaimable: tuple[str, ...]) -> GroupMemory:
    lines = (_text(group / "memory.stat") or "").splitlines()
    counts = dict(line.split(" ", 1) for line in lines if " " in line)
    cached = sum(int(counts.get(name, "0")) for name in reclaimable)
    return GroupMemory(group, limit, max(0, limit - used + cached))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return None
