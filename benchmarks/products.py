"""Products of every storage type on the CPU: how fast, and what share of a plain read.

One table per number of tokens: GB/s of weights, their share of a plain read of memory measured
in the same run, and GMAC/s, for every instruction set this processor runs. Reading and all
instruction sets take turns and medians are printed, so that a busy machine disturbs all alike;
``--cpu-time`` counts the processor time of the calling thread instead (one thread only), for
machines where the clock on the wall says little. Copies of the matrix rotate, so that weights
come from memory and not from a cache.

Run: python -m benchmarks.products [--threads N] [--tokens 1,2,8,64,512] [--cpu-time] [TYPE ...]
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from build_tools.native import build
from localglm.arrays import F32, U8
from localglm.backends.cpu.library import ISA_IDS
from localglm.quant.types import Family, StorageType

BYTES_IN_ROTATION = 256 << 20
READ = "plain read"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, and with which clock."""

    rows: int
    cols: int
    rounds: int
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Library:
    """The products of the built library on one pool."""

    handle: ctypes.CDLL
    pool: ctypes.c_void_p

    def matmul(self, isa: int, kind: StorageType, weights: U8, x: F32, y: F32) -> None:
        """Run one product; shapes: weights [rows, bytes], x [t, n], y [t, rows]."""
        code = self.handle.lg_matmul(
            self.pool,
            isa,
            0,
            kind.value.ggml_id,
            ctypes.c_void_p(weights.ctypes.data),
            ctypes.c_int64(weights.shape[0]),
            ctypes.c_int64(x.shape[1]),
            ctypes.c_void_p(x.ctypes.data),
            ctypes.c_int64(x.shape[0]),
            ctypes.c_void_p(y.ctypes.data),
        )
        if code != 0:
            raise SystemExit(f"lg_matmul returned {code} for {kind.name}")

    def isas(self) -> list[str]:
        """Return the instruction sets of this processor but the portable one, if there are any."""
        found = [name for name, isa in ISA_IDS.items() if self.handle.lg_isa_supported(isa)]
        return found[1:] or found


def open_library(threads: int) -> Library:
    """Build the library if needed and start a pool."""
    handle = ctypes.CDLL(str(build()))
    handle.lg_pool_create.restype = ctypes.c_void_p
    return Library(handle, ctypes.c_void_p(handle.lg_pool_create(threads)))


def random_weights(kind: StorageType, copies: int, rows: int, cols: int) -> U8:
    """Return finite weights of any type: random bits, but no large exponents in scale fields."""
    rng = np.random.default_rng(1)
    if kind.family is Family.FLOAT:
        wide = rng.standard_normal((copies, rows, cols)).astype(np.float32)
        half = (
            wide.astype(np.float16) if kind is StorageType.F16 else wide.view(np.uint16)[..., 1::2]
        )
        stored = wide if kind is StorageType.F32 else np.ascontiguousarray(half)
        return stored.view(np.uint8)
    bits = rng.integers(0, 256, (copies, rows, kind.row_bytes(cols)), dtype=np.uint8)
    return bits & np.uint8(0xBB)


def read_once(memory: U8) -> None:
    """Read every byte on the calling thread."""
    np.bitwise_xor.reduce(memory.reshape(-1)[: memory.size // 8 * 8].view(np.uint64))


def measure(library: Library, kind: StorageType, tokens: int, plan: Plan) -> dict[str, float]:
    """Return median seconds of one product per instruction set, and of reading its weights."""
    one = plan.rows * kind.row_bytes(plan.cols)
    copies = max(2, min(16, BYTES_IN_ROTATION // one))
    weights = random_weights(kind, copies, plan.rows, plan.cols)
    x = np.random.default_rng(2).standard_normal((tokens, plan.cols)).astype(np.float32)
    y = np.empty((tokens, plan.rows), np.float32)
    names = [*library.isas(), READ]
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(plan.rounds * len(names)):
        name, chosen = names[turn % len(names)], weights[turn % copies]
        begin = plan.clock()
        if name == READ:
            read_once(chosen)
        else:
            library.matmul(ISA_IDS[name], kind, chosen, x, y)
        times[name].append(plan.clock() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def report(library: Library, kind: StorageType, tokens: int, plan: Plan) -> None:
    """Print the line of one type."""
    times = measure(library, kind, tokens, plan)
    stored = plan.rows * kind.row_bytes(plan.cols)
    cells = []
    for name in library.isas():
        macs = plan.rows * plan.cols * tokens / times[name] / 1e9
        rate = stored / times[name] / 1e9
        cells.append(f"{rate:.1f} ({times[READ] / times[name]:.0%}), {macs:.1f}")
    print(f"| {kind.name} | {stored / times[READ] / 1e9:.1f} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    """Read the arguments and print one table per number of tokens."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("types", nargs="*", help="storage types (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", default="1,2,8,64", help="numbers of tokens, with commas")
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--cols", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--cpu-time", action="store_true", help="processor time of one thread")
    given = parser.parse_args()
    if given.cpu_time and given.threads != 1:
        parser.error("--cpu-time counts the calling thread only: it needs --threads 1")
    clock = time.thread_time if given.cpu_time else time.perf_counter
    library = open_library(given.threads)
    kinds = [StorageType[name] for name in given.types] or list(StorageType)
    names = library.isas()
    for tokens in map(int, given.tokens.split(",")):
        rounds = given.rounds if tokens < 64 else max(3, given.rounds // 4)
        plan = Plan(given.rows, given.cols, rounds, clock)
        print(f"\n{tokens} tokens: GB/s of weights (share of a plain read), GMAC/s\n")
        print(f"| type | {READ} |", " | ".join(names), "|")
        print("|", "--- |" * (len(names) + 2))
        for kind in kinds:
            report(library, kind, tokens, plan)
    library.handle.lg_pool_destroy(library.pool)


if __name__ == "__main__":
    main()
