"""Packed batches from worker processes.

Batch number n is made from the seed and n alone, whichever worker makes it: the same configuration
gives the same batches in the same order with any number of workers, and a run can start at any n.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from training.data.packing import Mix, Packer
from training.data.pick import Pick

DEFAULT_KINDS: Mapping[str, float] = {
    "about": 2.5,
    "arithmetic": 4.0,
    "copying": 1.5,
    "reversing": 1.0,
    "sorting": 2.0,
    "counting": 2.0,
    "units": 1.5,
    "writing": 1.0,
    "chinese": 1.0,
    "unknown": 2.0,
    "mixed": 2.0,
    "tools": 3.0,
    "memory": 1.5,
    "lookup": 4.0,
}
DEFAULT_EFFORTS: Mapping[str, float] = {"off": 3.0, "low": 2.0, "high": 2.0, "max": 1.0}
_PATIENCE_SECONDS = 0.05
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Phase:
    """Shares of the row lengths from batch ``first`` on."""

    first: int
    lengths: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """What to produce. A batch has rows of one length and ``batch_tokens`` tokens in all.

    ``prompt_weight``: loss of text the model does not write. ``align``: conversations start at
    multiples of it. ``stop``: number of the batch after the last one, None for no end.
    """

    seed: int = 1
    workers: int = 12
    batch_tokens: int = 65_536
    phases: tuple[Phase, ...] = (Phase(0, {512: 1.0}),)
    mix: Mix = field(default_factory=lambda: Mix(DEFAULT_KINDS, DEFAULT_EFFORTS))
    prompt_weight: float = 0.0
    align: int = 4
    depth: int = 4
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows b of length t.

    ``loss[b, t]`` weighs the prediction OF ``tokens[b, t]`` from what stands before it in its
    segment; it is 0 at the first token of every segment. ``segment[b, t]`` numbers conversations
    within a row from 0 and never falls; nothing may pass from one segment to another.
    ``kinds[b]`` names the kind of each segment of row b.

    Shapes: tokens [b, t] int32; loss [b, t] float32; segment [b, t] int32.
    """

    number: int
    tokens: npt.NDArray[np.int32]
    loss: npt.NDArray[np.float32]
    segment: npt.NDArray[np.int32]
    kinds: tuple[tuple[str, ...], ...]


class BatchMaker:
    """Makes batches in this process."""

    def __init__(self, config: StreamConfig) -> None:
        self._config = config
        self._packer = Packer(config.mix, config.align)

    def batch(self, number: int) -> Batch:
        """Make batch ``number``."""
        config = self._config
        pick = Pick(f"{config.seed}/{number}")
        phase = [phase for phase in config.phases if phase.first <= number][-1]
        length = pick.weighted(list(phase.lengths), list(phase.lengths.values()))
        rows = [
            self._packer.row(pick, length) for _ in range(max(1, config.batch_tokens // length))
        ]
        tokens = np.array([row.ids for row in rows], np.int32)
        taught = np.frombuffer(b"".join(row.taught for row in rows), np.uint8).reshape(tokens.shape)
        segment = np.stack([row.segments() for row in rows])
        loss = taught.astype(np.float32)
        if config.prompt_weight:
            for row, weights in zip(rows, loss, strict=True):
                prompt = (weights == 0) & (np.frombuffer(row.padded, np.uint8) == 0)
                prompt[row.starts] = False
                weights[prompt] = config.prompt_weight
        kinds = tuple(tuple(row.kinds) for row in rows)
        return Batch(number, tokens, loss, segment, kinds)


def open_stream(config: StreamConfig) -> Iterator[Batch]:
    """Yield batches in order; closing the iterator ends the workers.

    Raises: RuntimeError when a worker ends before its time.
    """
    workers: list[Worker] = []
    try:
        workers += [Worker(config, place) for place in range(config.workers)]
        number = config.start
        while config.stop is None or number < config.stop:
            yield workers[(number - config.start) % config.workers].next()
            number += 1
    finally:
        for worker in workers:
            worker.end()


class Worker:
    """A process that makes every ``workers``-th batch, and a thread that takes them in.

    A plain child process does not import the program that opened the stream, as one of
    ``multiprocessing`` would, so it starts in a fraction of a second beside a GPU library.
    """

    def __init__(self, config: StreamConfig, place: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "training.data.worker"],
            cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._made: queue.Queue[Batch | None] = queue.Queue(config.depth)
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps((config, place)))
        self._process.stdin.close()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def next(self) -> Batch:
        """Wait for the next batch.

        Raises: RuntimeError when the process has ended.
        """
        batch = self._made.get()
        if batch is None:
            message = f"the data worker ended with {self._process.wait()}"
            raise RuntimeError(message)
        return batch

    def end(self) -> None:
        """End the process and the thread."""
        self._process.kill()
        while self._reader.is_alive():
            # The thread may stand before a full queue.
            with contextlib.suppress(queue.Empty):
                self._made.get(timeout=_PATIENCE_SECONDS)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                batch: Batch = pickle.load(self._process.stdout)  # noqa: S301 - our own child
            except (EOFError, pickle.UnpicklingError):
                self._made.put(None)
                return
            self._made.put(batch)
