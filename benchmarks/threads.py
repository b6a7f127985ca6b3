"""How many threads are best here, and whether pinning them to cores helps.

Every number of threads up to the processors of this process computes in turn, on threads that move
freely and, where the system can pin threads, on threads that stay on one core each. Prints medians
and what is best, beside what ``auto`` takes. A difference below the spread of repeats is none.

Run: python -m benchmarks.threads FILE [--prompt 128] [--generate 16] [--rounds 3] [--most N]
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks.whole import Bench
from localglm.backends.cpu.device import CpuDevice
from localglm.engine.cores import auto_threads, cores_here
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.load import load_model

CAN_PIN = hasattr(os, "sched_setaffinity")


@dataclass(frozen=True, slots=True)
class Crew:
    """A device and its threads, the calling one first."""

    device: CpuDevice
    tids: list[int]
    pinned: bool
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def start(cls, threads: int, *, pinned: bool) -> Crew:
        """Open a device and find the threads it started."""
        before = _threads()
        device = CpuDevice(threads)
        return cls(device, [min(before), *sorted(_threads() - before)], pinned)

    @property
    def name(self) -> str:
        """Return the label of a row."""
        return f"{self.device.threads} {'pinned' if self.pinned else 'free'}"

    def settle(self, allowed: list[int]) -> None:
        """Let the threads run where this crew wants them."""
        for number, tid in enumerate(self.tids if CAN_PIN else ()):
            place = {allowed[number % len(allowed)]} if self.pinned else set(allowed)
            os.sched_setaffinity(tid, place)


def _threads() -> set[int]:
    return {int(thread.id) for thread in psutil.Process().threads()}


def row(crew: Crew, cases: list[str], best: dict[str, float]) -> str:
    """Return a row: tokens per second, how far below the best, and the spread of repeats."""
    cells = []
    for case in cases:
        each = crew.seconds[case]
        middle = statistics.median(each)
        spread = (np.quantile(each, 0.75) - np.quantile(each, 0.25)) / middle
        cells.append(f"{1 / middle:.1f} ({best[case] / middle:.0%}, +-{spread / 2:.1%})")
    return f"| {crew.name} | " + " | ".join(cells) + " |"


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, help="the most threads to try")
    given = parser.parse_args()
    cores = cores_here()
    allowed = sorted(os.sched_getaffinity(0)) if CAN_PIN else list(range(cores.logical))
    kinds = (False, True) if CAN_PIN else (False,)
    counts = range(1, (given.most or cores.logical) + 1)
    crews = [Crew.start(n, pinned=pinned) for n in counts for pinned in kinds]
    with open_model(given.file) as file:
        models = [Model(*load_model(file, crew.device), crew.device) for crew in crews]
        for turn in range(given.rounds + 1):
            for crew, model in zip(crews, models, strict=True):
                bench = Bench(model, np.random.default_rng(turn))
                crew.settle(allowed)
                prompt, tokens = bench.prefill(given.prompt), bench.decode(given.generate)
                if turn:  # the first round brings the file's pages in
                    crew.seconds["prompt"].append(prompt / given.prompt)
                    crew.seconds["decoding"] += tokens
    cases = ["prompt", "decoding"]
    best = {c: min(statistics.median(crew.seconds[c]) for crew in crews) for c in cases}
    print(f"{cores}; auto takes {auto_threads(cores)}\n")
    print("| threads | prompt tokens/s (of the best, spread) | decoding |\n| --- | --- | --- |")
    for crew in crews:
        print(row(crew, cases, best))
        crew.device.close()
    for case in cases:
        first = min(crews, key=lambda crew: statistics.median(crew.seconds[case]))
        print(f"\nbest for {case}: {first.name}")


if __name__ == "__main__":
    main()
