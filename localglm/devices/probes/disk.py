"""Measure how fast a file can be read at random places, one read at a time and sixteen at once."""

from __future__ import annotations

import mmap
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from localglm.devices.answers import DiskRate
from localglm.devices.probes import AbsentError

_PIECE = 2 << 20
_LEAST = 64 << 20
_SECONDS = 0.5
_DEEP = 16


def probe(place: str) -> DiskRate:
    """Read pieces of 2 MiB from a file, or from the largest file of a folder. Nothing is written.

    Raises: AbsentError when there is no file large enough to tell anything.
    """
    file = _largest(Path(place))
    size = file.stat().st_size
    reader, is_direct = _reader(file)
    one, read_one = _measure(reader, size, 1)
    deep, read_deep = _measure(reader, size, _DEEP)
    return DiskRate(str(file), size, read_one + read_deep, one, deep, is_direct)


def _largest(place: Path) -> Path:
    files = [place] if place.is_file() else [f for f in place.glob("*") if f.is_file()]
    sizes = {file: file.stat().st_size for file in files}
    best = max(sizes, key=lambda file: sizes[file], default=None)
    if best is None or sizes[best] < _LEAST:
        raise AbsentError(f"{place} holds no file of {_LEAST >> 20} MiB or more to read")
    return best


def _reader(file: Path) -> tuple[Callable[[int], int], bool]:
    """Return a function that reads the piece at an offset, and whether it passes the cache by."""
    direct = getattr(os, "O_DIRECT", None)
    if direct is not None:
        try:
            handle = os.open(file, os.O_RDONLY | direct)
            # Direct reads need memory at the border of a page.
            os.preadv(handle, [memoryview(mmap.mmap(-1, mmap.PAGESIZE))], 0)
        except OSError:
            pass  # some file systems have no direct reads
        else:
            return lambda offset: os.preadv(handle, [mmap.mmap(-1, _PIECE)], offset), True

    def read(offset: int) -> int:
        with file.open("rb", buffering=0) as stream:
            stream.seek(offset)
            return len(stream.read(_PIECE))

    return read, False


def _measure(read: Callable[[int], int], size: int, depth: int) -> tuple[float, int]:
    """Read at ``depth`` places at once until the time is up; return bytes per second and bytes."""
    begin = time.perf_counter()
    end = begin + _SECONDS

    def work(seed: int) -> int:
        places, total = random.Random(seed), 0  # noqa: S311 - places, not secrets
        while time.perf_counter() < end:
            total += read(places.randrange(size // _PIECE) * _PIECE)
        return total

    with ThreadPoolExecutor(depth) as pool:
        total = sum(pool.map(work, range(depth)))
    return total / (time.perf_counter() - begin), total
