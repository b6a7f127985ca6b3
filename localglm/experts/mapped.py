"""A home for experts that fit into memory but are not there yet.

They stay mapped. Before an expert is lent the first time its pages are brought into the system's
cache by plain reads, many at once, instead of by a page fault every few kilobytes
(docs/measurements/disk.md compares the ways).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from localglm.arrays import U8
from localglm.backends.base import LentExpert
from localglm.experts.failures import Key, Patience, cannot_be_read, no_answer
from localglm.experts.guesses import GuessRecord
from localglm.experts.layout import ExpertLayout
from localglm.experts.reader import CLOSE_SECONDS, DriveFile, Ending, Outcome, Reader, ReadSpan
from localglm.experts.statistics import HomeStatistics
from localglm.experts.streamed import GLANCE, StreamedOptions

Stacks = tuple[U8, U8, U8]
"""The mapped bytes of all gates, ups and downs of a layer."""


class MappedHome:
    """Lends the mapped bytes of experts once they were read. Used by one thread."""

    def __init__(
        self, layout: ExpertLayout, paths: Sequence[Path], stacks: Mapping[int, Stacks],
        options: StreamedOptions,
    ) -> None:  # fmt: skip
        self._layout = layout
        self._paths = tuple(paths)
        self._stacks = stacks
        self._patience = options.patience
        self.notes = options.notes
        self._files = [DriveFile(path, direct=False) for path in paths]
        self._reader = Reader(options.depth, read=options.read)
        self._guesses = GuessRecord()
        self._keys = [(n, e) for n, layer in layout.layers.items() for e in range(layer.experts)]
        self._ids = {key: id_ for id_, key in enumerate(self._keys)}
        self._near: set[Key] = set()  # read once
        self._reading: set[Key] = set()
        self._guessed: set[Key] = set()  # read on a guess, not wanted so far
        self._asked: set[Key] = set()  # read because wanted, not lent so far
        self._failed: dict[Key, Ending] = {}
        self._hits = self._foreseen = self._misses = 0
        self._waited = 0.0

    def expect(self, layer: int, experts: Sequence[int], *, certain: bool) -> None:
        """Begin to read what was never read: what is certain at once, guesses behind it."""
        self._collect(0.0)
        keys = [(layer, expert) for expert in experts]
        if certain:
            self._bring(keys)
            return
        absent = [key for key in keys if key not in self._near and key not in self._reading]
        self._guesses.guess(layer, [expert for _, expert in absent])
        for key in absent[: 2 * self._layout.used] if self._guesses.pays else ():
            self._guessed.add(key)
            self._read(key, urgent=False)

    def lend(self, layer: int, experts: Sequence[int]) -> Iterator[Sequence[LentExpert]]:
        """Yield ``experts``: those that are near first, then the others as they arrive.

        Raises: ModelFileError naming the file, layer and expert when one cannot be read.
        """
        keys = [(layer, expert) for expert in experts]
        self._guesses.judge(layer, experts)
        self._failed.clear()
        self._bring(keys)
        self._count(keys)
        waiting = dict.fromkeys(keys)
        while waiting:
            here = self._arrived(waiting)
            yield [self._view(key) for key in here]
            for key in here:
                del waiting[key]

    def statistics(self) -> HomeStatistics:
        """Return what was done so far; ``slots`` counts the experts that were read once."""
        sums = self._reader.sums()
        return HomeStatistics(
            hits=self._hits,
            foreseen=self._foreseen,
            misses=self._misses,
            wasted_guesses=0,
            bytes_read=sums.nbytes,
            read_seconds=sums.busy_seconds,
            flight_seconds=sums.flight_seconds,
            waiting_seconds=self._waited,
            guess_rate=self._guesses.rate,
            is_guessing=self._guesses.pays,
            slots=len(self._near),
            slot_bytes=self._layout.slot_bytes,
            is_direct=False,
        )

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Free everything, waiting up to ``seconds`` for reads to return."""
        if self._reader.close(seconds):
            for file in self._files:
                file.close()

    def _count(self, keys: Sequence[Key]) -> None:
        """Count what is wanted by how it stood before anybody knew."""
        for key in keys:
            if key in self._guessed:
                self._guessed.remove(key)
                self._foreseen += 1
            elif key in self._asked:
                self._asked.remove(key)
                self._misses += 1
            else:
                self._hits += 1

    def _bring(self, keys: Sequence[Key]) -> None:
        for key in keys:
            if key in self._reading:
                self._reader.promote(self._ids[key])
            elif key not in self._near:
                self._asked.add(key)
                self._read(key, urgent=True)

    def _read(self, key: Key, *, urgent: bool) -> None:
        parts = self._layout.layers[key[0]].of(key[1])
        spans = [
            ReadSpan(self._files[part.shard].handle, part.offset, part.nbytes, part.nbytes, None)
            for part in parts
        ]
        self._reader.submit(self._ids[key], spans, urgent=urgent)
        self._reading.add(key)

    def _collect(self, seconds: float) -> None:
        for ending in self._reader.wait(seconds):
            key = self._keys[ending.id]
            self._reading.discard(key)
            if ending.outcome is Outcome.DONE:
                self._near.add(key)
            else:
                self._guessed.discard(key)
                self._failed[key] = ending

    def _arrived(self, waiting: Mapping[Key, None]) -> list[Key]:
        self._collect(0.0)
        begun, patience = time.perf_counter(), Patience(self._reader, self._patience)
        while True:
            here = [key for key in waiting if key in self._near]
            if here:
                self._waited += time.perf_counter() - begun
                return here
            for key in waiting:
                if key in self._failed:
                    ending = self._failed[key]
                    raise cannot_be_read(self._path(key, ending.span), key, ending)
            self._collect(GLANCE)
            if patience.is_over():
                key = next(iter(waiting))
                raise no_answer(self._path(key, 0), key, self._patience)

    def _view(self, key: Key) -> LentExpert:
        layer, expert = key
        parts = (
            stack[expert * part.nbytes : (expert + 1) * part.nbytes]
            for stack, part in zip(
                self._stacks[layer], self._layout.layers[layer].first, strict=True
            )
        )
        return LentExpert(expert, *parts)

    def _path(self, key: Key, part: int) -> Path:
        return self._paths[self._layout.layers[key[0]].first[part].shard]
