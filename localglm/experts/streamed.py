"""A home for experts that do not fit into memory: they are read from the file when wanted.

Ties the layout, the reader and the cache together; the rules of who is read when stand here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localglm.backends.base import LentExpert
from localglm.experts.cache import ExpertCache
from localglm.experts.failures import Key, Patience, cannot_be_read, no_answer
from localglm.experts.frequency import AgedFrequency
from localglm.experts.guesses import GuessRecord
from localglm.experts.layout import ByteRange, ExpertLayout
from localglm.experts.reader import (
    CLOSE_SECONDS,
    DriveFile,
    Ending,
    Outcome,
    Reader,
    ReadFunction,
    ReadSpan,
)
from localglm.experts.statistics import HomeStatistics

PATIENCE = 30.0
"""Seconds without any read coming back after which the drive is said not to answer."""

GLANCE = 0.2
"""Seconds of one wait, so that an interrupt is noticed."""


@dataclass(frozen=True, slots=True)
class StreamedOptions:
    """Reads in flight, patience with the drive, and what takes the place of the system's read."""

    depth: int
    patience: float = PATIENCE
    read: ReadFunction | None = None
    notes: tuple[str, ...] = ()


class StreamedHome:
    """Lends experts out of a budget of memory and reads the others. Used by one thread."""

    def __init__(
        self, layout: ExpertLayout, paths: Sequence[Path], memory: int, options: StreamedOptions
    ) -> None:
        layers = layout.layers
        self._layout = layout
        self._paths = tuple(paths)
        self.notes = options.notes
        self._patience = options.patience
        self._worth = AgedFrequency(layers, max(layer.experts for layer in layers.values()))
        self._cache = ExpertCache(layout.slot_bytes, memory, layout.least_slots, self._worth)
        self._files: list[DriveFile] = []
        self._reopen()
        self._reader = Reader(options.depth, read=options.read)
        self._guesses = GuessRecord()
        self._plan: tuple[int, frozenset[int]] | None = None
        self._kept: set[Key] = set()  # wanted now and not lent yet: nobody may replace them
        self._backlog: deque[Key] = deque()  # wanted now, no slot yet
        self._fresh: set[Key] = set()  # guesses whose layer has not come yet
        self._guessed: set[Key] = set()  # read on a guess, never wanted so far
        self._lent: list[Key] = []
        self._failed: dict[Key, Ending] = {}
        self._is_lost = False  # a read failed, so that the files are opened again
        self._hits = self._foreseen = self._misses = self._wasted = 0
        self._waited = 0.0

    # -- the contract -------------------------------------------------------------------------
    def expect(self, layer: int, experts: Sequence[int], *, certain: bool) -> None:
        """Begin to read what is not in memory: what is certain at once, guesses behind it."""
        if self._is_lost:
            return
        self._collect(0.0)
        if certain:
            self._want(layer, experts)
        else:
            self._guess(layer, experts)

    def lend(self, layer: int, experts: Sequence[int]) -> Iterator[Sequence[LentExpert]]:
        """Yield ``experts``: those in memory first, then the others as they arrive.

        Raises: ModelFileError naming the file, layer and expert when one cannot be read.
        """
        self._recover()
        for key in self._lent:  # by a loop that an error left, and whose traceback is still held
            self._cache.give_back(key)
        self._lent.clear()
        if self._plan != (layer, frozenset(experts)):
            self._want(layer, experts)
        self._plan = None
        waiting = dict.fromkeys((layer, expert) for expert in experts)
        lent = self._lent = []
        try:
            while waiting:
                lent += self._arrived(waiting)
                yield [self._view(key) for key in lent]
                for key in self._end(lent):
                    del waiting[key]
                self._start()
        finally:
            self._end(lent)
            if lent is self._lent:
                self._kept.clear()
                self._backlog.clear()

    # -- the owner's side ---------------------------------------------------------------------
    def resize(self, memory: int) -> None:
        """Change the budget; memory above it goes back at once, but for what is in use.

        Raises: MemoryShortError when it is less than the least.
        """
        self._collect(0.0)
        self._cache.resize(memory)
        absent = [key for key in sorted(self._kept) if self._cache.place(key) is None]
        self._backlog = deque(key for key in absent if key not in self._failed)

    def statistics(self) -> HomeStatistics:
        """Return what was done so far."""
        sums = self._reader.sums()
        return HomeStatistics(
            hits=self._hits,
            foreseen=self._foreseen,
            misses=self._misses,
            wasted_guesses=self._wasted,
            bytes_read=sums.nbytes,
            read_seconds=sums.busy_seconds,
            flight_seconds=sums.flight_seconds,
            waiting_seconds=self._waited,
            guess_rate=self._guesses.rate,
            is_guessing=self._guesses.pays,
            slots=self._cache.slots,
            slot_bytes=self._cache.slot_bytes,
            is_direct=all(file.direct for file in self._files),
        )

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Free everything, waiting up to ``seconds`` for reads to return.

        What a read that never returns may write to is left to the system.
        """
        if self._reader.close(seconds):
            self._cache.close()
            for file in self._files:
                file.close()

    # -- what is wanted -----------------------------------------------------------------------
    def _want(self, layer: int, experts: Sequence[int]) -> None:
        wanted = frozenset(experts)
        self._plan = (layer, wanted)
        self._failed.clear()
        self._guesses.judge(layer, wanted)
        self._worth.use(layer, experts)
        self._withdraw(layer, wanted)
        self._fresh = {key for key in self._fresh if key[0] != layer}
        keys = [(layer, expert) for expert in experts]
        self._kept = set(keys)
        self._backlog.clear()
        for key in keys:
            slot = self._cache.place(key)
            if key in self._guessed:
                self._guessed.remove(key)
                self._foreseen += 1
            elif slot is not None:
                self._hits += 1
            else:
                self._misses += 1
            if slot is None:
                self._backlog.append(key)
            else:
                self._reader.promote(slot)
        self._start()

    def _guess(self, layer: int, experts: Sequence[int]) -> None:
        absent = [e for e in experts if self._cache.place((layer, e)) is None]
        self._guesses.guess(layer, absent)
        if not self._guesses.pays or self._backlog:
            return
        room = min(2 * self._layout.used, self._cache.slots - len(self._kept)) - len(self._fresh)
        kept = self._kept | self._fresh
        for expert in absent[: max(room, 0)]:
            if not self._read((layer, expert), kept, urgent=False):
                return
            self._guessed.add((layer, expert))
            self._fresh.add((layer, expert))

    def _withdraw(self, layer: int, wanted: frozenset[int]) -> None:
        """Stop reading guesses that turned out wrong."""
        for key in self._fresh:
            slot = self._cache.place(key)
            if key[0] == layer and key[1] not in wanted and slot is not None:
                self._reader.withdraw(slot)

    def _start(self) -> None:
        """Begin to read what waits for a slot, as far as there are slots."""
        while self._backlog:
            key = self._backlog[0]
            if not (
                self._read(key, self._kept | self._fresh, urgent=True)
                or self._read(key, self._kept, urgent=True)
            ):
                return
            self._backlog.popleft()

    # -- reading ------------------------------------------------------------------------------
    def _read(self, key: Key, kept: set[Key], *, urgent: bool) -> bool:
        """Begin to read an expert; False when there is no slot for it."""
        claimed = self._cache.claim(key, kept)
        if claimed is None:
            return False
        slot, evicted = claimed
        if evicted in self._guessed:
            self._guessed.discard(evicted)
            self._fresh.discard(evicted)
            self._wasted += 1
        address = int(self._cache.memory(slot).ctypes.data)
        spans = []
        for part in self._ranges(key):
            handle, lead = self._files[part.shard].handle, part.offset - part.first_page
            spans.append(
                ReadSpan(handle, part.first_page, part.page_bytes, lead + part.nbytes, address)
            )
            address += part.room
        self._reader.submit(slot, spans, urgent=urgent)
        return True

    def _collect(self, seconds: float) -> bool:
        """Take note of what has been read, waiting up to ``seconds``; whether anything was."""
        endings = list(self._reader.wait(seconds))
        for ending in endings:
            key = self._cache.owner(ending.id)
            assert key is not None
            if ending.outcome is Outcome.DONE:
                self._cache.hold(ending.id)
                self._keep_cache_clear(key)
                continue
            self._cache.vacate(ending.id)
            self._guessed.discard(key)
            self._fresh.discard(key)
            if ending.outcome is not Outcome.WITHDRAWN:
                self._failed[key] = ending
                self._is_lost = True
            elif key in self._kept:
                self._backlog.append(key)
        return bool(endings)

    def _keep_cache_clear(self, key: Key) -> None:
        """Without direct reads, keep the system's cache for what is mapped."""
        for part in self._ranges(key):
            file = self._files[part.shard]
            if not file.direct:
                file.forget(part.first_page, part.page_bytes)

    def _arrived(self, waiting: dict[Key, None]) -> list[Key]:
        """Return wanted experts that are in memory, waiting for the first."""
        self._collect(0.0)
        begun, patience = time.perf_counter(), Patience(self._reader, self._patience)
        while True:
            self._start()
            here = [key for key in waiting if self._cache.is_held(key)]
            if here:
                self._waited += time.perf_counter() - begun
                # the other half of the slots is read into while these are computed
                return here[: self._cache.slots // 2] if self._backlog else here
            for key in waiting:
                if key in self._failed:
                    ending = self._failed[key]
                    raise cannot_be_read(self._path(key, ending.span), key, ending)
            self._collect(GLANCE)
            if patience.is_over():
                key = next(iter(waiting))
                raise no_answer(self._path(key, 0), key, self._patience)

    def _view(self, key: Key) -> LentExpert:
        """Pin an expert and show its three parts."""
        memory, at, parts = self._cache.lend(key), 0, []
        for part in self._ranges(key):
            first = at + part.offset - part.first_page
            parts.append(memory[first : first + part.nbytes])
            at += part.room
        return LentExpert(key[1], *parts)

    def _end(self, lent: list[Key]) -> list[Key]:
        """End the lending of all of ``lent``, and empty it; returns what it held."""
        ended = list(lent)
        lent.clear()
        for key in ended:
            self._kept.discard(key)
            self._cache.give_back(key)
        return ended

    def _ranges(self, key: Key) -> tuple[ByteRange, ByteRange, ByteRange]:
        return self._layout.layers[key[0]].of(key[1])

    # -- failures -----------------------------------------------------------------------------
    def _recover(self) -> None:
        """After a failed read, open the files again: the drive may be back under another handle."""
        if not self._is_lost:
            return
        self._collect(0.0)
        if self._reader.sums().requests == 0:
            self._reopen()
        self._is_lost = False
        self._plan = None

    def _reopen(self) -> None:
        files = [DriveFile(path, direct=True) for path in self._paths]
        for file in self._files:
            file.close()
        self._files = files

    def _path(self, key: Key, part: int) -> Path:
        return self._paths[self._ranges(key)[part].shard]
