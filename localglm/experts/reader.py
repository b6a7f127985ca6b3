"""Reads of byte ranges by native threads, many at once, past the system's cache.

Knows files, offsets and addresses; not what an expert is.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localglm.errors import MemoryShortError, ModelFileError
from localglm.experts.layout import PAGE
from localglm.experts.library import (
    READ,
    SPANS,
    Account,
    Ended,
    Span,
    fault_text,
    load,
    path_argument,
)

PIECE = 1 << 19
"""Bytes of one read; docs/measurements/disk.md compares sizes."""

CLOSE_SECONDS = 2.0
"""How long closing waits for reads that are under way."""

_AT_ONCE = 64  # requests reported by one call
_SECOND = 10**9
_NO_DIRECT_READS = (errno.EINVAL, errno.ENOTSUP)  # what Linux and macOS answer

ReadFunction = Callable[[int, int, int, int, Any], int]
"""(file, address, bytes, offset, pointer to the fault) -> bytes read, as ``lg_read`` says."""


class Outcome(enum.Enum):
    """How a request ended."""

    DONE = 0
    FAULT = 1
    END = 2
    WITHDRAWN = 3


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """``nbytes`` at ``offset`` to ``address``; the first ``needed`` must arrive.

    Address None reads them for the system's cache alone.
    """

    file: int
    offset: int
    nbytes: int
    needed: int
    address: int | None


@dataclass(frozen=True, slots=True)
class Ending:
    """A request that ended; ``fault`` is the system's number, ``span`` the one that failed."""

    id: int
    outcome: Outcome
    fault: int
    span: int


@dataclass(frozen=True, slots=True)
class ReadSums:
    """Totals; busy: with a read outstanding, flight: its integral over the reads in flight."""

    nbytes: int
    reads: int
    busy_seconds: float
    flight_seconds: float
    outstanding: int
    requests: int


class DriveFile:
    """A file open for positional reads. ``direct``: they pass the system's cache."""

    def __init__(self, path: Path, *, direct: bool) -> None:
        self._library = load()
        self.path = path
        handle = ctypes.c_int64()
        fault = self._library.lg_file_open(path_argument(path), direct, ctypes.byref(handle))
        # file systems in memory and some network ones know no direct reads
        self.direct = direct and fault not in _NO_DIRECT_READS
        if direct and not self.direct and sys.platform != "win32":
            fault = self._library.lg_file_open(path_argument(path), 0, ctypes.byref(handle))
        if fault:
            raise ModelFileError(
                f"{path} cannot be read",
                why=fault_text(fault),
                try_="check that the file exists and that your user may read it",
            )
        self.handle = handle.value
        self._open = True

    def forget(self, offset: int, nbytes: int) -> None:
        """Let the system's cache drop a range."""
        self._library.lg_file_forget(self.handle, offset, nbytes)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._open:
            self._open = False
            self._library.lg_file_close(self.handle)


class Reader:
    """``threads`` native threads that read what is submitted; used by one Python thread."""

    def __init__(
        self, threads: int, *, piece: int = PIECE, read: ReadFunction | None = None
    ) -> None:
        self._library = load()
        self._read = None if read is None else READ(read)
        self.threads = threads
        address = None if self._read is None else ctypes.cast(self._read, ctypes.c_void_p)
        self._reader: int | None = self._library.lg_reader_create(threads, piece, PAGE, address)
        if self._reader is None:
            raise MemoryShortError(
                f"{threads} threads that read from the drive could not be started",
                why="the system refused a thread or its memory",
                try_="close other programs and open the model again",
            )
        self._ended = (Ended * _AT_ONCE)()

    def submit(self, id_: int, spans: Sequence[ReadSpan], *, urgent: bool) -> None:
        """Queue a request under an id no other outstanding one has."""
        assert 0 < len(spans) <= SPANS
        array = (Span * len(spans))(
            *(Span(s.file, s.offset, s.nbytes, s.needed, s.address) for s in spans)
        )
        if not self._library.lg_reader_submit(self._at, id_, array, len(spans), urgent):
            raise MemoryShortError(
                "a read could not be queued",
                why="the system refused the memory for it",
                try_="close other programs and repeat the request",
            )

    def promote(self, id_: int) -> None:
        """Make a guess certain; does nothing when it has ended."""
        self._library.lg_reader_promote(self._at, id_)

    def withdraw(self, id_: int) -> None:
        """Read nothing more of a request; it still ends, as withdrawn or done."""
        self._library.lg_reader_withdraw(self._at, id_)

    def wait(self, seconds: float) -> Iterator[Ending]:
        """Yield what has ended, waiting up to ``seconds`` when nothing has."""
        count = self._library.lg_reader_wait(
            self._at, int(seconds * _SECOND), self._ended, _AT_ONCE
        )
        for one in list(self._ended[:count]):
            yield Ending(one.id, Outcome(one.code), one.fault, one.span)

    def sums(self) -> ReadSums:
        """Return the totals since the reader was made."""
        account = Account()
        self._library.lg_reader_sum(self._at, ctypes.byref(account))
        return ReadSums(
            account.nbytes,
            account.reads,
            account.busy / _SECOND,
            account.flight / _SECOND,
            account.outstanding,
            account.requests,
        )

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Stop; whether every thread came back. One that did not may still write to its memory."""
        if self._reader is None:
            return True
        reader, self._reader = self._reader, None
        came_back: bool = self._library.lg_reader_close(reader, int(seconds * _SECOND)) == 0
        if not came_back and self._read is not None:
            # the stuck thread is inside this function: it must outlive the reader
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._read))
        return came_back

    @property
    def _at(self) -> int:
        assert self._reader is not None, "the reader is closed"
        return self._reader


@contextlib.contextmanager
def open_files(paths: Sequence[Path], *, direct: bool) -> Iterator[list[DriveFile]]:
    """Open all files or none."""
    with contextlib.ExitStack() as stack:
        files = []
        for path in paths:
            files.append(DriveFile(path, direct=direct))
            stack.callback(files[-1].close)
        yield files
