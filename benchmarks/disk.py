"""What a drive gives to parallel direct reads, and decoding with experts read from it.

Prints MB/s of 1, 4, 8, 16 and 32 reads at a time past the system's cache. With ``--tokens`` it
then decodes that many tokens with ``--experts`` GiB of memory for experts and prints, by token and
in all: MB/s from the drive over the whole time and while reading, their share of 16 parallel reads
(measured before and after, because drives change), reads in flight, hits, guesses and major page
faults. ``--limit`` GiB puts the process into a memory control group of that size first (Linux, as
root), and ``--cold`` lets the system's cache drop the file.

Run: python -m benchmarks.disk FILE [--tokens 12] [--experts 1] [--limit 3.7] [--cold]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from localglm.backends.cpu.device import CpuDevice
from localglm.experts import (
    HomeStatistics,
    MappedHome,
    StreamedHome,
    expert_bytes,
    minimum_memory,
    open_home,
    open_mapped_home,
)
from localglm.experts.drive import measure
from localglm.experts.reader import DriveFile
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed

GIB, MB = 1 << 30, 10**6
CONTROL = Path("/sys/fs/cgroup/memory")


@dataclass(frozen=True, slots=True)
class Moment:
    """The counters at one time."""

    clock: float
    faults: int
    home: HomeStatistics | None


@contextmanager
def memory_limit(gib: float | None) -> Iterator[None]:
    """Run inside a memory control group of version 1."""
    if gib is None:
        yield
        return
    group = CONTROL / f"localglm-disk-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(int(gib * GIB)))
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        print("most memory:", int((group / "memory.max_usage_in_bytes").read_text()) / GIB, "GiB")
        (CONTROL / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


def depth_table(path: Path) -> dict[int, float]:
    """Print and return bytes per second at each depth."""
    rates = measure(path, seconds=1.0)
    for depth, rate in rates.items():
        print(f"{depth:>3} reads at a time: {rate / MB:8.1f} MB/s", flush=True)
    return rates


def moment(home: StreamedHome | MappedHome | None) -> Moment:
    """Read the counters."""
    faults = 0
    if os.name == "posix":
        import resource  # noqa: PLC0415 - not on Windows

        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    return Moment(time.perf_counter(), faults, None if home is None else home.statistics())


def line(name: str, before: Moment, after: Moment) -> str:
    """Return what happened between two moments."""
    seconds = after.clock - before.clock
    text = f"{name:>9} {seconds:7.3f} s  {after.faults - before.faults:>5} major faults"
    if before.home is None or after.home is None:
        return text
    a, b = before.home, after.home
    busy, flight = b.read_seconds - a.read_seconds, b.flight_seconds - a.flight_seconds
    over_all, reading = rates(before, after)
    return (
        f"{text}  {over_all / MB:6.0f} MB/s, while reading {reading / MB:6.0f}"
        f"  in flight {flight / busy if busy else 0.0:4.1f}"
        f"  hits/foreseen/misses {b.hits - a.hits}/{b.foreseen - a.foreseen}/{b.misses - a.misses}"
        f"  wasted {b.wasted_guesses - a.wasted_guesses}"
        f"  waiting {(b.waiting_seconds - a.waiting_seconds) / seconds:4.0%}"
        f"  guesses right {b.guess_rate or 0.0:4.0%}"
    )


def rates(before: Moment, after: Moment) -> tuple[float, float]:
    """Return bytes per second over all the time, and while reading."""
    assert before.home is not None
    assert after.home is not None
    read = after.home.bytes_read - before.home.bytes_read
    busy = after.home.read_seconds - before.home.read_seconds
    return read / (after.clock - before.clock), read / busy if busy else 0.0


def decode(
    model: Model, home: StreamedHome | MappedHome | None, tokens: int
) -> tuple[Moment, Moment]:
    """Decode, print one line per token and one for all after the first four; return its ends."""
    state = model.new_state(context=tokens + 16)
    ids = np.random.default_rng(3).integers(0, model.geometry.vocabulary, tokens).tolist()
    marks = [moment(home)]
    for at, id_ in enumerate(ids):
        model.forward(state, [id_])
        marks.append(moment(home))
        print(line(f"token {at}", marks[-2], marks[-1]), flush=True)
    start = min(4, tokens - 1)
    print(line(f"{start} to {tokens - 1}", marks[start], marks[-1]))
    return marks[start], marks[-1]


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--experts", type=float, help="GiB for experts (default: the least)")
    parser.add_argument("--limit", type=float, help="GiB the process may use")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--cold", action="store_true", help="drop the file from the cache first")
    parser.add_argument("--mapped", action="store_true", help="decode from the mapped file instead")
    parser.add_argument("--warmed", action="store_true", help="the same, read ahead of the faults")
    given = parser.parse_args()
    if given.cold:
        with closing(DriveFile(given.file, direct=False)) as file:
            file.forget(0, 0)
    best = [depth_table(given.file).get(16, 0.0)]
    if not given.tokens:
        return
    with memory_limit(given.limit):
        before, after = run(given)
    if not given.mapped:
        best.append(measure(given.file, (16,), 1.0)[16])
        mean = sum(best) / 2
        over_all, reading = (rate / mean for rate in rates(before, after))
        print(f"16 reads at a time: {best[0] / MB:.0f} MB/s before, {best[1] / MB:.0f} after")
        print(f"share of their mean: {over_all:.0%} over all, {reading:.0%} while reading")


def run(given: argparse.Namespace) -> tuple[Moment, Moment]:
    """Open the model as asked and decode."""
    file = open_model(given.file)
    found = survey(file)
    memory = minimum_memory(found) if given.experts is None else int(given.experts * GIB)
    print(f"experts {expert_bytes(found) / GIB:.2f} GiB, of the file's {file.file_bytes / GIB:.2f}")
    home: StreamedHome | MappedHome | None = None
    if given.warmed:
        home = open_mapped_home(file, found, depth=given.depth)
    elif not given.mapped:
        home = open_home(file, found, memory=memory, depth=given.depth)
    device = CpuDevice(given.threads)
    try:
        geometry, weights = load_surveyed(file, found, device, home=home)
        return decode(Model(geometry, weights, device), home, given.tokens)
    finally:
        device.close()
        if home is not None:
            home.close()


if __name__ == "__main__":
    main()
