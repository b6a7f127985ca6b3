"""Giving memory back while it is short, before the system would swap, and taking it again later."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

from localglm.engine.memory_groups import group_memory
from localglm.engine.memory_limits import group_reserve, reserve_of
from localglm.units import size_text

if TYPE_CHECKING:
    from localglm.engine.model_port import ExpertCachePort

_LOOK_SECONDS = 0.5
_CALM_SECONDS = 10.0


def spare_memory() -> int:
    """Return what may still be taken without touching the reserves; below zero: what lacks."""
    memory = psutil.virtual_memory()
    spare = [int(memory.available) - reserve_of(int(memory.total))]
    spare += [group.free - group_reserve(group.limit) for group in group_memory()]
    return min(spare)


@dataclass(slots=True)
class Pressure:
    """Watches memory between steps. ``drop_points`` forgets states and returns how many.

    What lacks is given back at once; the cache grows again only after a while without a shortage,
    and only into half of what is spare, so that it does not swing.
    """

    cache: ExpertCachePort | None
    drop_points: Callable[[], int]
    spare: Callable[[], int] = spare_memory
    clock: Callable[[], float] = time.monotonic
    shortages: int = 0
    _looked: float | None = field(default=None)
    _short_at: float = field(default=0.0)
    _is_short: bool = field(default=False)

    def relieve(self) -> list[str]:
        """Look, unless that was done a moment ago; returns what the user should know."""
        now = self.clock()
        if self._looked is not None and now - self._looked < _LOOK_SECONDS:
            return []
        self._looked = now
        spare = self.spare()
        if spare < 0:
            self._short_at = now
            return self._shrink(-spare)
        if self._is_short and now - self._short_at >= _CALM_SECONDS:
            return self._grow(spare)
        return []

    def _shrink(self, lacking: int) -> list[str]:
        is_news, self._is_short = not self._is_short, True
        self.shortages += is_news
        dropped = self.drop_points()
        if dropped:
            # What they free is seen at the next look; the cache stays until then.
            return [
                f"memory is short: old places to go back to were forgotten ({dropped})"
            ] * is_news
        cache = self.cache
        if cache is not None and cache.memory > cache.least:
            cache.resize(max(cache.least, cache.memory - lacking))
            left = size_text(cache.memory)
            return [f"memory is short: experts keep {left}, more come from the disk"] * is_news
        if not is_news:
            return []
        return ["memory is short: other programs need it, answers may become slow"]

    def _grow(self, spare: int) -> list[str]:
        cache = self.cache
        wanted = 0 if cache is None else cache.most - cache.memory
        if cache is not None and wanted > 0:
            cache.resize(cache.memory + min(wanted, spare // 2))
        self._is_short = cache is not None and cache.memory < cache.most
        return []


@dataclass(slots=True)
class ExpertCacheMemory:
    """The memory of a streamed home: now, at least and at most."""

    set_memory: Callable[[int], None]
    memory: int
    least: int
    most: int = field(init=False)

    def __post_init__(self) -> None:
        self.most = self.memory

    def resize(self, memory: int) -> None:
        """Change the budget."""
        self.set_memory(memory)
        self.memory = memory
