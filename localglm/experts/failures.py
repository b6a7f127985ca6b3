"""What is said when an expert cannot be read, and when a drive is given up."""

from __future__ import annotations

import time
from pathlib import Path

from localglm.errors import ModelFileError
from localglm.experts.layout import PARTS
from localglm.experts.library import fault_text
from localglm.experts.reader import Ending, Outcome, Reader

Key = tuple[int, int]
"""(layer, expert)."""


class Patience:
    """Notices when for ``seconds`` no read has come back."""

    def __init__(self, reader: Reader, seconds: float) -> None:
        self._reader = reader
        self._seconds = seconds
        self._reads = reader.sums().reads
        self._last = time.perf_counter()

    def is_over(self) -> bool:
        """Whether nothing came back for too long; call it after every wait."""
        now, reads = time.perf_counter(), self._reader.sums().reads
        if reads != self._reads:
            self._reads, self._last = reads, now
        return now - self._last > self._seconds


def cannot_be_read(path: Path, key: Key, ending: Ending) -> ModelFileError:
    """Return the error for a request that failed; its spans are the parts of the expert."""
    what = f"{path}: {PARTS[ending.span]} of expert {key[1]} in layer {key[0]} cannot be read"
    if ending.outcome is Outcome.END:
        return ModelFileError(
            what,
            why="the file ends before it: it was cut short",
            try_="copy or download the file again, then repeat the request",
        )
    return ModelFileError(
        what,
        why=fault_text(ending.fault),
        try_="check the drive and its cable, then repeat the request",
    )


def no_answer(path: Path, key: Key, seconds: float) -> ModelFileError:
    """Return the error for a drive from which nothing comes any more."""
    return ModelFileError(
        f"{path}: the drive does not answer",
        why=f"expert {key[1]} of layer {key[0]} was asked for, and for {seconds:g} s nothing came",
        try_="check the drive and its cable, then repeat the request",
    )
