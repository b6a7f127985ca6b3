"""How many reads at once a drive likes: measured once, remembered in the data folder."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localglm.experts.layout import PAGE
from localglm.experts.library import load
from localglm.experts.reader import PIECE, DriveFile, Outcome, Reader, ReadSpan

DEPTHS = (1, 4, 8, 16, 32)
DEFAULT_DEPTH = 16
_SECONDS = 0.3  # for each depth
_CLOSE_TO_BEST = 0.95
_QUEUED = 2  # requests per thread, so that none waits for the next
_NAME = "drives.json"


@dataclass(frozen=True, slots=True)
class Depth:
    """Reads to keep in flight; ``rates`` in bytes per second where it was measured now."""

    depth: int
    rates: Mapping[int, float]
    notes: tuple[str, ...]


def drive_depth(path: Path, folder: Path | None) -> Depth:
    """Return the depth for the drive of ``path``: remembered in ``folder``, or measured now.

    A folder that cannot be read or written is a note, never an error.
    Raises: ModelFileError when the file cannot be opened.
    """
    notes: list[str] = []
    key = _drive_key(path)
    known = {} if folder is None else _remembered(folder, notes)
    if (depth := known.get(key)) is not None:
        return Depth(depth, {}, tuple(notes))
    rates = measure(path)
    if not rates:
        return Depth(DEFAULT_DEPTH, {}, (*notes, f"{path}: its drive could not be measured"))
    depth = choose(rates)
    if folder is not None:
        _remember(folder, {**known, key: depth}, notes)
    return Depth(depth, rates, tuple(notes))


def choose(rates: Mapping[int, float]) -> int:
    """Return the usual depth where it is close to the best, else the smallest one that is."""
    enough = _CLOSE_TO_BEST * max(rates.values())
    if rates.get(DEFAULT_DEPTH, 0.0) >= enough:
        return DEFAULT_DEPTH
    return min(depth for depth, rate in rates.items() if rate >= enough)


def measure(
    path: Path, depths: Sequence[int] = DEPTHS, seconds: float = _SECONDS
) -> dict[int, float]:
    """Return bytes per second at each depth, reading ``path`` at random places past the cache.

    Empty when the file is too small or a read fails.
    """
    with contextlib.closing(DriveFile(path, direct=True)) as file, _memory(max(depths)) as memory:
        pages = (path.stat().st_size - PIECE) // PAGE
        if pages < 1 or not file.direct:
            return {}
        rates = {}
        for depth in depths:
            rate = _rate(file, pages, memory[: depth * _QUEUED], seconds)
            if rate is None:
                return {}
            rates[depth] = rate
        return rates


def _rate(file: DriveFile, pages: int, memory: list[int], seconds: float) -> float | None:
    chance = random.Random(len(memory))  # noqa: S311 - places to read, nothing secret
    reader = Reader(len(memory) // _QUEUED)

    def submit(id_: int) -> None:
        offset = chance.randrange(pages) * PAGE
        span = ReadSpan(file.handle, offset, PIECE, PIECE, memory[id_])
        reader.submit(id_, (span,), urgent=True)

    try:
        begun = time.perf_counter()
        for id_ in range(len(memory)):
            submit(id_)
        while (now := time.perf_counter()) - begun < seconds:
            for ending in reader.wait(seconds):
                if ending.outcome is not Outcome.DONE:
                    return None
                submit(ending.id)
        return reader.sums().nbytes / (now - begun)
    finally:
        for id_ in range(len(memory)):
            reader.withdraw(id_)
        reader.close()


@contextlib.contextmanager
def _memory(depth: int) -> Iterator[list[int]]:
    """Lend the addresses of aligned memory for every read of ``depth``."""
    library = load()
    nbytes = depth * _QUEUED * PIECE
    address = library.lg_memory_take(nbytes)
    try:
        yield [] if address is None else list(range(address, address + nbytes, PIECE))
    finally:
        if address is not None:
            library.lg_memory_give(address, nbytes)


def _drive_key(path: Path) -> str:
    """Name the drive: its device id, and its size because ids are handed out again."""
    return f"{path.stat().st_dev:x}-{shutil.disk_usage(path).total:x}"


def _remembered(folder: Path, notes: list[str]) -> dict[str, int]:
    place = folder / _NAME
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return {
            str(key): depth
            for key, depth in found.items()
            if isinstance(depth, int) and depth in DEPTHS
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        notes.append(f"{place} cannot be read ({error}): drives are measured again")
        return {}


def _remember(folder: Path, depths: Mapping[str, int], notes: list[str]) -> None:
    place = folder / _NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=_NAME, delete=False
        ) as fresh:
            json.dump(dict(depths), fresh)
        Path(fresh.name).replace(place)
    except OSError as error:
        notes.append(f"{place} cannot be written ({error.strerror}): drives are measured each time")
