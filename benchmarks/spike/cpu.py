"""The C kernels on this machine, one thread, AVX2 and portable."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orders
from formats import (
    F32,
    U8,
    Activations,
    Format,
    block_sums,
    grid_bytes,
    random_activations,
    random_weights,
)
from numpy.typing import NDArray
from report import ORDERS, Measured, print_table, same_bits

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "spike"
FLAGS = ["-O3", "-ffp-contract=off", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
COLS = 4096
FORMATS = list(Format)
SLICES = 16


def build(march: str) -> Path:
    """Compile spike.c for one instruction set and return the library's path."""
    BUILD.mkdir(parents=True, exist_ok=True)
    out = BUILD / f"spike-{march}.so"
    command = [sys.executable, "-m", "ziglang", "cc", f"-march={march}", *FLAGS]
    command += ["-fvisibility=hidden", str(HERE / "c" / "spike.c"), "-o", str(out)]
    subprocess.run(command, check=True)
    return out


def tables() -> NDArray[np.uint64]:
    """Return 256 grid entries, then 128 sign entries of eight bytes +1 or -1."""
    index = np.arange(128, dtype=np.uint8)
    bits = (index | ((np.bitwise_count(index) & 1) << 7)).astype(np.uint8)
    signs = 1 - 2 * np.unpackbits(bits[:, None], axis=1, bitorder="little").astype(np.int8)
    return np.concatenate([grid_bytes().view(np.uint64), signs.view(np.uint64)]).ravel()


class Library:
    """The exported loops of one build."""

    def __init__(self, path: Path) -> None:
        self._lib = ctypes.CDLL(str(path))
        self._lib.spike_read.restype = ctypes.c_uint64
        self._tables = tables()

    def matvec(self, fmt: Format, order: str, raw: U8, act: Activations) -> F32:
        """Return the products of every row with the first activation row."""
        y = np.full(raw.shape[0], np.nan, np.float32)
        sums = act.sums.astype(np.int16)
        self._lib.spike_matvec(
            FORMATS.index(fmt), ORDERS.index(order), _at(raw), _long(raw.shape[0]), _long(COLS),
            _at(act.q), _at(act.scale), _at(sums), _at(self._tables), _at(y),
        )  # fmt: skip
        return y

    def matmul(self, fmt: Format, order: str, raw: U8, act: Activations) -> F32:
        """Return [tokens, rows]."""
        tokens = act.q.shape[0]
        y = np.full((tokens, raw.shape[0]), np.nan, np.float32)
        scale = np.ascontiguousarray(act.scale.T)
        self._lib.spike_matmul(
            FORMATS.index(fmt), ORDERS.index(order), _at(raw), _long(raw.shape[0]), _long(COLS),
            _long(tokens), _at(act.q), _at(scale), _at(self._tables), _at(y),
        )  # fmt: skip
        return y

    def read(self, data: U8) -> int:
        """Sum the bytes as 64-bit words: the plain read."""
        return int(self._lib.spike_read(_at(data), _long(data.nbytes // 8)))

    def exp(self, x: F32) -> F32:
        """Return the contract's exp of every value."""
        y = np.empty_like(x)
        self._lib.spike_exp(_at(x), _at(y), _long(x.size))
        return y


def _at(array: NDArray[np.generic]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _long(value: int) -> ctypes.c_int64:
    return ctypes.c_int64(value)


def _clock(call: Callable[[], object]) -> float:
    """Return the processor seconds of this thread: other programs share the cores."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def _interleave(
    calls: dict[str, Callable[[int], object]], rounds: int
) -> dict[str, NDArray[np.float64]]:
    """Time every variant once a round, in a rotating sequence; the argument is the round."""
    names = list(calls)
    seconds = {name: np.zeros(rounds) for name in names}
    for i in range(rounds):
        for k in range(len(names)):
            name = names[(i + k) % len(names)]
            seconds[name][i] = _clock(lambda name=name, i=i: calls[name](i))  # type: ignore[misc]
    return seconds


def matvec_case(lib: Library, name: str, fmt: Format, rows: int, rounds: int) -> Measured:
    """Time slices of a ``rows`` x 4096 matrix in turn, and check every row of one slice."""
    raw = random_weights(fmt, rows, COLS, 1)
    act = random_activations(fmt, 1, COLS, 2)
    size = rows // SLICES
    slices = [raw[i * size : (i + 1) * size] for i in range(SLICES)]
    exact, differs = _check(fmt, slices[0], act, lambda o, w, a: lib.matvec(fmt, o, w, a)[None])
    tiny = (
        random_weights(fmt, 512, COLS, 3, edge=True),
        random_activations(fmt, 1, COLS, 4, edge=True),
    )
    edge, _ = _check(fmt, *tiny, lambda o, w, a: lib.matvec(fmt, o, w, a)[None])
    calls: dict[str, Callable[[int], object]] = {
        o: (lambda i, o=o: lib.matvec(fmt, o, slices[i % SLICES], act))  # type: ignore[misc]
        for o in ORDERS
    }
    seconds = _interleave(calls, rounds)
    both = {o: exact[o] and edge[o] for o in orders.EXACT}
    return Measured(
        f"matvec {name}", fmt.name, "GB/s", slices[0].nbytes / 1e9, seconds, both, differs
    )


def matmul_case(
    lib: Library, name: str, fmt: Format, rows: int, tokens: int, rounds: int
) -> Measured:
    """Time ``tokens`` x 4096 x ``rows`` and check every 16th row."""
    raw = random_weights(fmt, rows, COLS, 5)
    act = random_activations(fmt, tokens, COLS, 6)
    exact, differs = _check(
        fmt, raw[::16], act, lambda o, _w, a: lib.matmul(fmt, o, raw, a)[:, ::16]
    )
    calls: dict[str, Callable[[int], object]] = {
        o: (lambda _i, o=o: lib.matmul(fmt, o, raw, act))  # type: ignore[misc]
        for o in ORDERS
    }
    work = tokens * COLS * rows / 1e9
    return Measured(
        f"matmul {name}", fmt.name, "GMAC/s", work, _interleave(calls, rounds), exact, differs
    )


def _check(
    fmt: Format, raw: U8, act: Activations, run: Callable[[str, U8, Activations], F32]
) -> tuple[dict[str, bool], bool]:
    factors, sums = block_sums(fmt, np.ascontiguousarray(raw), act)
    want = {o: orders.total(fmt, o, factors, sums) for o in orders.EXACT}
    got = {o: np.ascontiguousarray(run(o, raw, act)) for o in orders.EXACT}
    exact = {o: same_bits(want[o], got[o]) for o in orders.EXACT}
    return exact, not same_bits(want["A"], got["C"])


def measure(*, quick: bool) -> None:
    """Run every case of the processor and print its table."""
    libs = {"avx2": Library(build("x86_64_v3")), "portable": Library(build("x86_64"))}
    blob = random_weights(Format.Q8_0, 2048, COLS, 9)  # as large as a slice of the cases
    reads: list[float] = []
    rows: list[Measured] = []
    for name, lib in libs.items():
        for fmt in Format:
            # Among the cases, so that the ceiling sees the same neighbours as they do.
            reads += [_clock(lambda: libs["avx2"].read(blob)) for _ in range(5)]
            rows.append(matvec_case(lib, name, fmt, 2048 if quick else 32768, 4 if quick else 64))
            fast = name == "avx2" and not quick
            shape = (256, 512, 11) if fast else (64, 128, 11)
            rows.append(matmul_case(lib, name, fmt, *shape))
    print_table(rows, blob.nbytes / 1e9 / float(np.median(reads)))
