"""Products of every storage type on the CPU: portable C against AVX2, one token and 64.

Prints GB/s of weights (one token) and GMAC/s (both). The variants of a type take turns and the
median is printed, so that a busy machine disturbs all of them alike. Several copies of the
matrix rotate, so that weights come from memory and not from a cache.

Run: python -m benchmarks.products [--threads N] [--rows N] [--cols N] [--rounds N] [TYPE ...]
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
from localglm.quant.types import Family, StorageType

ISAS = {"portable": 0, "avx2": 1, "neon": 2, "avx512": 3}
TOKENS = 64
BYTES_IN_ROTATION = 256 << 20


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


def seconds(action: Callable[[], None]) -> float:
    """Return the time of one call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def measure(
    library: Library, kind: StorageType, rows: int, cols: int, tokens: int, rounds: int
) -> dict[str, float]:
    """Return the median seconds of one product per instruction set."""
    one = rows * kind.row_bytes(cols)
    copies = max(1, min(16, BYTES_IN_ROTATION // one))
    weights = random_weights(kind, copies, rows, cols)
    x = np.random.default_rng(2).standard_normal((tokens, cols)).astype(np.float32)
    y = np.empty((tokens, rows), np.float32)
    names = [name for name, isa in ISAS.items() if library.handle.lg_isa_supported(isa)]
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names:
            chosen = weights[turn % copies]
            isa = ISAS[name]
            times[name].append(seconds(lambda: library.matmul(isa, kind, chosen, x, y)))  # noqa: B023
    return {name: statistics.median(values) for name, values in times.items()}


def report(library: Library, kind: StorageType, rows: int, cols: int, rounds: int) -> None:
    """Print the line of one type."""
    cells = []
    for tokens in (1, TOKENS):
        count = rounds if tokens == 1 else max(3, rounds // 5)
        for name, median in measure(library, kind, rows, cols, tokens, count).items():
            gigabytes = rows * kind.row_bytes(cols) / median / 1e9
            macs = rows * cols * tokens / median / 1e9
            stream = f"{gigabytes:6.2f} GB/s" if tokens == 1 else ""
            cells.append(f"{name} x{tokens}: {stream} {macs:6.1f} GMAC/s")
    print(f"{kind.name:8}", " | ".join(cells), flush=True)


def main() -> None:
    """Read the arguments and print one line per type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("types", nargs="*", help="storage types (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--cols", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    library = open_library(given.threads)
    kinds = [StorageType[name] for name in given.types] or list(StorageType)
    for kind in kinds:
        report(library, kind, given.rows, given.cols, given.rounds)
    library.handle.lg_pool_destroy(library.pool)


if __name__ == "__main__":
    main()
