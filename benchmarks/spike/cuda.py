"""The CUDA kernels: compiled to PTX by zig's clang, loaded and timed through the driver library."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orders
from cpu import Library
from driver import Driver
from formats import (
    F32,
    U8,
    Activations,
    Format,
    block_sums,
    grid_bytes,
    planes,
    random_activations,
    random_weights,
)
from numpy.typing import NDArray
from report import Measured, print_table, same_bits

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "spike"
COLS = 4096
ROUNDS = 21
WARM_UP = 40  # an idle card runs at a sixth of its clock
SOURCES = ("matvec", "matmul", "exp")
# Order F exists for 32-value types only: blocks of a run chained by fma, runs as in order A.
MATVEC = {Format.Q8_0: "ABCDEF", Format.Q6_K: "ABCDE", Format.IQ2_XXS: "ABCDE"}
MATMUL = {Format.Q8_0: "ACF", Format.Q6_K: "ACE", Format.IQ2_XXS: "ACE"}


def prepare() -> None:
    """Compile every kernel to PTX for sm_90."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        command = [sys.executable, "-m", "ziglang", "clang", "-x", "cuda", "--cuda-device-only"]
        command += ["-nocudainc", "-nocudalib", "--cuda-feature=+ptx78", "-O3", "-ffp-contract=off"]
        command += ["--cuda-gpu-arch=sm_90", "-Wall", "-Wextra", "-Wno-unknown-cuda-version", "-S"]
        command += [str(HERE / "cuda" / f"{name}.cu"), "-o", str(BUILD / f"{name}.ptx")]
        subprocess.run(command, check=True)


class Operands(ctypes.Structure):
    """The argument block of both kernel files; matrix-vector kernels ignore the last two."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("plane0", "plane1", "plane2", "scales", "x")),
        *((name, ctypes.c_uint64) for name in ("x_scale", "x_sums", "grid", "y")),
    )


class BatchOperands(ctypes.Structure):
    """The argument block of the matrix-matrix kernels."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("plane0", "plane1", "plane2", "scales", "x")),
        *((name, ctypes.c_uint64) for name in ("x_scale", "grid", "y")),
        ("rows", ctypes.c_int),
        ("tokens", ctypes.c_int),
    )


@dataclass(frozen=True, slots=True)
class Weights:
    """Device addresses of one weight set: three planes (absent ones 0) and the scales."""

    planes: tuple[int, int, int]
    scales: int


def chain_order(fmt: Format, raw: U8) -> list[U8]:
    """Return the planes of order F: [row pair][block of run][half][row, run] and scales alike."""
    q, scales = planes(fmt, raw)
    rows = raw.shape[0]
    q = q.reshape(rows // 2, 2, 16, 8, 2, 16).transpose(0, 3, 4, 1, 2, 5)
    scales = scales.reshape(rows // 2, 2, 16, 8, 2).transpose(0, 3, 1, 2, 4)
    return [np.ascontiguousarray(q), np.ascontiguousarray(scales)]


def upload(gpu: Driver, parts: list[U8]) -> Weights:
    """Copy one weight set to the card."""
    addresses = [gpu.upload(p) for p in parts]
    data = [*addresses[:-1], 0, 0][:3]
    return Weights((data[0], data[1], data[2]), addresses[-1])


def interleave(
    gpu: Driver, graphs: dict[str, ctypes.c_void_p], launches: int
) -> dict[str, NDArray[np.float64]]:
    """Replay every variant once a round, in a rotating sequence; seconds of one launch."""
    names = list(graphs)
    for _ in range(WARM_UP):
        for name in names:
            gpu.time_graph(graphs[name])
    seconds = {name: np.zeros(ROUNDS) for name in names}
    for i in range(ROUNDS):
        for k in range(len(names)):
            name = names[(i + k) % len(names)]
            seconds[name][i] = gpu.time_graph(graphs[name]) / launches
    return seconds


class Matvec:
    """Matrix-vector variants of one format over several weight sets."""

    def __init__(self, gpu: Driver, fmt: Format, raw: U8, act: Activations, sets: int) -> None:
        self._gpu, self._fmt, self._rows = gpu, fmt, raw.shape[0]
        self._sets = {False: [upload(gpu, planes(fmt, raw)) for _ in range(sets)]}
        q, scale = act.q, act.scale
        self._x = {False: (gpu.upload(q), gpu.upload(scale))}
        if fmt is Format.Q8_0:
            self._sets[True] = [upload(gpu, chain_order(fmt, raw)) for _ in range(sets)]
            chained = q.reshape(16, 8, 2, 16).transpose(1, 2, 0, 3)
            self._x[True] = gpu.upload(chained), gpu.upload(scale.reshape(16, 8).T)
        self._sums = gpu.upload(act.sums)
        self._grid = gpu.upload(grid_bytes())
        self._y = gpu.empty(4 * self._rows)
        self._kernel = gpu.load(BUILD / "matvec.ptx")

    def launch(self, order: str, which: int) -> None:
        """Launch one order on one weight set."""
        chained = order == "F"
        sets = self._sets[chained]
        w, (x, scale) = sets[which % len(sets)], self._x[chained]
        args = Operands(*w.planes, w.scales, x, scale, self._sums, self._grid, self._y)
        kernel = self._kernel(f"matvec_{self._fmt.name}_{order}")
        self._gpu.launch(kernel, (self._rows // 32, 1), 256, args)

    def run(self, order: str) -> F32:
        """Return the result of one order."""
        self.launch(order, 0)
        return self._gpu.download(self._y, np.full((1, self._rows), np.nan, np.float32))

    def graph(self, order: str, launches: int) -> ctypes.c_void_p:
        """Capture ``launches`` launches over the rotating sets."""

        def record() -> None:
            for i in range(launches):
                self.launch(order, i)

        return self._gpu.capture(record)


class Matmul:
    """Matrix-matrix variants of one format."""

    def __init__(self, gpu: Driver, fmt: Format, raw: U8, act: Activations) -> None:
        self._gpu, self._fmt = gpu, fmt
        self._shape = act.q.shape[0], raw.shape[0]
        w = upload(gpu, planes(fmt, raw))
        self._y = gpu.empty(4 * raw.shape[0] * act.q.shape[0])
        x, scale = gpu.upload(act.q), gpu.upload(np.ascontiguousarray(act.scale.T))
        grid = gpu.upload(grid_bytes())
        self._args = BatchOperands(*w.planes, w.scales, x, scale, grid, self._y, *self._shape[::-1])
        self._kernel = gpu.load(BUILD / "matmul.ptx")

    def launch(self, order: str, kind: str = "matmul") -> None:
        """Launch one order; ``kind`` resident leaves the tile loads out."""
        tokens, rows = self._shape
        kernel = self._kernel(f"{kind}_{self._fmt.name}_{order}")
        self._gpu.launch(kernel, (rows // 64, tokens // 64), 256, self._args)

    def run(self, order: str) -> F32:
        """Return [tokens, rows] of one order."""
        self.launch(order)
        return self._gpu.download(self._y, np.full(self._shape, np.nan, np.float32))

    def graph(self, order: str, launches: int, kind: str) -> ctypes.c_void_p:
        """Capture ``launches`` launches, after one that loads the kernel."""
        self.launch(order, kind)

        def record() -> None:
            for _ in range(launches):
                self.launch(order, kind)

        return self._gpu.capture(record)


def check(
    fmt: Format, raw: U8, act: Activations, got: dict[str, F32]
) -> tuple[dict[str, bool], bool]:
    """Compare results [tokens, rows] with the definitions; also whether the control differs."""
    factors, sums = block_sums(fmt, raw, act)
    want = {o: orders.total(fmt, o, factors, sums) for o in got if o != "E"}
    return {o: same_bits(want[o], np.ascontiguousarray(got[o])) for o in want}, not same_bits(
        want["A"], np.ascontiguousarray(got["C"])
    )


def matvec_case(gpu: Driver, fmt: Format, rows: int) -> Measured:
    """Check ordinary and edge operands bit for bit and time every order."""
    act = random_activations(fmt, 1, COLS, 2)
    tiny = (
        random_weights(fmt, 512, COLS, 3, edge=True),
        random_activations(fmt, 1, COLS, 4, edge=True),
    )
    edge_case = Matvec(gpu, fmt, *tiny, 1)
    names = MATVEC[fmt]
    edge, _ = check(fmt, *tiny, {o: edge_case.run(o) for o in names})
    raw = random_weights(fmt, rows, COLS, 1)
    case = Matvec(gpu, fmt, raw, act, 6 if fmt is Format.IQ2_XXS else 3)
    exact, differs = check(fmt, raw, act, {o: case.run(o) for o in names})
    seconds = interleave(gpu, {o: case.graph(o, 18) for o in names}, 18)
    both = {o: exact[o] and edge[o] for o in exact}
    return Measured("matvec", fmt.name, "GB/s", raw.nbytes / 1e9, seconds, both, differs)


def matmul_case(gpu: Driver, fmt: Format, rows: int, tokens: int) -> list[Measured]:
    """Check every 64th row bit for bit and time every order, with tile loads and without."""
    raw, act = random_weights(fmt, rows, COLS, 5), random_activations(fmt, tokens, COLS, 6)
    case = Matmul(gpu, fmt, raw, act)
    names, work = MATMUL[fmt], tokens * COLS * rows / 1e9
    got = {o: case.run(o)[:, ::64] for o in names}
    exact, differs = check(fmt, np.ascontiguousarray(raw[::64]), act, got)
    measured = []
    for kind in ("matmul", "resident"):
        seconds = interleave(gpu, {o: case.graph(o, 16, kind) for o in names}, 16)
        if "E" not in seconds:
            seconds["E"] = seconds["C"]
        bits = exact if kind == "matmul" else {}
        measured.append(Measured(kind, fmt.name, "GMAC/s", work, seconds, bits, differs))
    return measured


def plain_read(gpu: Driver, nbytes: int) -> float:
    """Return GB/s of a kernel that only reads."""
    address, out = gpu.empty(nbytes), gpu.empty(4)
    blocks = 132 * 16
    args = ctypes.c_uint64(address), ctypes.c_uint64(out), ctypes.c_int(nbytes // 16)
    kernel = gpu.load(BUILD / "exp.ptx")("plain_read")

    def record() -> None:
        gpu.launch(kernel, (blocks, 1), 256, *args, ctypes.c_int(blocks * 256))

    record()  # loads the kernel, which a capture may not
    graph = gpu.capture(record)
    return nbytes / 1e9 / float(np.median([gpu.time_graph(graph) for _ in range(12)][2:]))


def check_exp(gpu: Driver, count: int) -> None:
    """Compare the contract's exp with the C library's: random bit patterns and a dense range."""
    rng = np.random.default_rng(7)
    patterns = rng.integers(0, 2**32, count // 2, dtype=np.uint32).view(np.float32)
    x = np.concatenate([patterns, rng.uniform(-106, 90, count // 2).astype(np.float32)])
    want = Library(BUILD / "spike-x86_64_v3.so").exp(x)
    source, target = gpu.upload(x), gpu.empty(x.nbytes)
    kernel = gpu.load(BUILD / "exp.ptx")("contract_exp")
    args = ctypes.c_uint64(source), ctypes.c_uint64(target), ctypes.c_int(count)
    gpu.launch(kernel, (count // 256, 1), 256, *args)
    got = gpu.download(target, np.empty_like(x))
    nan = np.isnan(want)
    differ = (want.view(np.uint32) != got.view(np.uint32)) & ~(nan & np.isnan(got))
    control = int((np.exp(x[count // 2 :]) != got[count // 2 :]).sum())
    print(
        f"exp over {count} floats: {int(differ.sum())} differ from C; control (numpy's): {control}"
    )


def measure(*, quick: bool) -> None:
    """Run every case of the card and print its table."""
    if not (BUILD / "exp.ptx").exists():
        prepare()
    gpu = Driver()
    read = plain_read(gpu, 2**26 if quick else 2**32)
    rows: list[Measured] = []
    for fmt in Format:
        rows.append(matvec_case(gpu, fmt, 2048 if quick else 32768))
        rows += matmul_case(gpu, fmt, 512 if quick else 4096, 512)
    print_table(rows, read)
    check_exp(gpu, 2**20 if quick else 2**24)
