"""The WGSL kernels through wgpu and Vulkan."""

from __future__ import annotations

from typing import Any

import numpy as np
import orders
import wgpu
from formats import (
    F32,
    I32,
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
from wgpu.backends.wgpu_native.extras import set_instance_extras
from wgsl import matvec
from wgsl_matmul import matmul

COLS = 4096
ROUNDS = 15
LAUNCHES = 180  # in one pass: short passes leave an idle card at a low clock
# G is order A with every lone product kept whole by a guard; only Q8_0 has lone products.
MATVEC = {Format.Q8_0: "AGBCDE", Format.Q6_K: "ABCDE", Format.IQ2_XXS: "ABCDE"}
MATMUL = {Format.Q8_0: "AGC", Format.Q6_K: "ACE", Format.IQ2_XXS: "ACE"}
DEFINITION = {"G": "A"}


class Gpu:
    """One Vulkan device with timestamps and the spike's nine bindings."""

    def __init__(self) -> None:
        set_instance_extras(backends=["Vulkan"])
        adapter = wgpu.gpu.enumerate_adapters_sync()[0]
        limits = (
            "max-storage-buffer-binding-size",
            "max-buffer-size",
            "max-storage-buffers-per-shader-stage",
        )
        self.device = adapter.request_device_sync(
            required_features=["subgroup", "timestamp-query"],
            required_limits={name: adapter.limits[name] for name in limits},
        )
        self.is_cpu = adapter.info["adapter_type"] == "CPU"
        storage = [
            {
                "binding": i,
                "visibility": wgpu.ShaderStage.COMPUTE,
                "buffer": {"type": "storage" if i == 8 else "read-only-storage"},
            }
            for i in range(9)
        ]
        self._groups = self.device.create_bind_group_layout(entries=storage)
        self._layout = self.device.create_pipeline_layout(bind_group_layouts=[self._groups])
        self._queries = self.device.create_query_set(type="timestamp", count=2)
        self.dummy = self.upload(np.zeros(64, np.uint8))
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        self._ticks = self.device.create_buffer(size=16, usage=usage)

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a storage buffer with the bytes of ``array``."""
        data = np.ascontiguousarray(array)
        buffer = self.empty(data.nbytes)
        self.device.queue.write_buffer(buffer, 0, data)
        return buffer

    def empty(self, nbytes: int) -> Any:
        """Return a zeroed storage buffer."""
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        return self.device.create_buffer(size=(nbytes + 3) // 4 * 4, usage=usage)

    def pipeline(self, code: str) -> Any:
        """Compile one kernel."""
        module = self.device.create_shader_module(code=code)
        return self.device.create_compute_pipeline(
            layout=self._layout, compute={"module": module, "entry_point": "main"}
        )

    def bind(self, buffers: list[Any]) -> Any:
        """Bind nine buffers; None becomes a dummy."""
        entries = [
            {"binding": i, "resource": {"buffer": b or self.dummy}} for i, b in enumerate(buffers)
        ]
        return self.device.create_bind_group(layout=self._groups, entries=entries)

    def run(self, pipeline: Any, groups: list[Any], grid: tuple[int, int], launches: int) -> float:
        """Dispatch in one pass over rotating bind groups; return seconds of one dispatch."""
        encoder = self.device.create_command_encoder()
        stamps = {
            "query_set": self._queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }
        one = encoder.begin_compute_pass(timestamp_writes=stamps)
        one.set_pipeline(pipeline)
        for i in range(launches):
            one.set_bind_group(0, groups[i % len(groups)])
            one.dispatch_workgroups(*grid)
        one.end()
        encoder.resolve_query_set(self._queries, 0, 2, self._ticks, 0)
        self.device.queue.submit([encoder.finish()])
        start, stop = np.frombuffer(self.device.queue.read_buffer(self._ticks), np.uint64)
        return float(stop - start) * 1e-9 / launches

    def read(self, buffer: Any, shape: tuple[int, ...]) -> F32:
        """Copy float32 results back."""
        return (
            np.frombuffer(self.device.queue.read_buffer(buffer), np.float32).reshape(shape).copy()
        )


class Case:
    """The pipelines and buffers of one kernel and format."""

    def __init__(
        self, gpu: Gpu, kernel: str, fmt: Format, raw: U8, act: Activations, names: str, sets: int
    ) -> None:
        self._gpu = gpu
        tokens, rows = act.q.shape[0], raw.shape[0]
        self._shape = tokens, rows
        subgroup = 8 if gpu.is_cpu else 32
        if kernel == "matvec":
            sources = {o: matvec(fmt, o, subgroup) for o in names}
            self._grid = (rows // 64, 4) if rows >= 64 * 64 else (rows // 16, 1)
        else:
            sources = {o: matmul(fmt, o) for o in names}
            self._grid = (rows // 64, tokens // 64)
        self._pipelines = {o: gpu.pipeline(code) for o, code in sources.items()}
        self._y = gpu.empty(4 * tokens * rows)
        x = [
            gpu.upload(act.q),
            gpu.upload(act.scale.T),
            gpu.upload(act.sums),
            gpu.upload(grid_bytes()),
        ]
        parts = planes(fmt, raw)
        self._groups = []
        for _ in range(sets):
            data = [gpu.upload(p) for p in parts]
            weights = [*data[:-1], None, None][:3]
            self._groups.append(gpu.bind([*weights, data[-1], *x, self._y]))

    def result(self, order: str) -> F32:
        """Return [tokens, rows] of one order, from a poisoned output."""
        tokens, rows = self._shape
        poison = np.full(tokens * rows, np.nan, np.float32)
        self._gpu.device.queue.write_buffer(self._y, 0, poison)
        self.time(order, 1)
        return self._gpu.read(self._y, self._shape)

    def time(self, order: str, launches: int) -> float:
        """Return seconds of one dispatch."""
        return self._gpu.run(self._pipelines[order], self._groups, self._grid, launches)

    def interleave(self, names: str, launches: int, rounds: int) -> dict[str, NDArray[np.float64]]:
        """Time every variant once a round, in a rotating sequence."""
        seconds = {name: np.zeros(rounds) for name in names}
        for i in range(-rounds, rounds):  # the first half warms the card up
            for k in range(len(names)):
                name = names[(i + k) % len(names)]
                taken = self.time(name, launches)
                if i >= 0:
                    seconds[name][i] = taken
        return seconds


def explain(fmt: Format, order: str, factors: F32, sums: I32, value: F32) -> str:
    """Name the departure from IEEE arithmetic that reproduces ``value``, if one does."""
    flushed = np.where(np.abs(factors) < np.float32(2.0**-126), np.float32(0), factors)
    variants = {
        "fma is not fused": orders.total(fmt, order, factors, sums, fused=False),
        "subnormal d_w * d_x is flushed": orders.total(fmt, order, flushed, sums),
    }
    return next((why for why, bits in variants.items() if same_bits(bits, value)), "unknown")


def check(
    label: str, fmt: Format, raw: U8, act: Activations, got: dict[str, F32]
) -> tuple[dict[str, bool], bool]:
    """Compare results with the definitions, and say how far any difference goes."""
    factors, sums = block_sums(fmt, raw, act)
    exact = {}
    for name, value in got.items():
        if name == "E":
            continue
        want = orders.total(fmt, DEFINITION.get(name, name), factors, sums)
        exact[name] = same_bits(want, np.ascontiguousarray(value))
        if not exact[name]:
            share = float((want != value).mean())
            worst = float(np.nanmax(np.abs(want - value)) / np.abs(want).max())
            definition = DEFINITION.get(name, name)
            why = explain(fmt, definition, factors, sums, np.ascontiguousarray(value))
            print(
                f"{label} {fmt.name} {name}: {share:.4f} of the values differ, "
                f"worst {worst:.2e} of max; reason: {why}"
            )
    control = orders.total(fmt, "A", factors, sums)
    return exact, not same_bits(control, np.ascontiguousarray(got["C"]))


def matvec_case(gpu: Gpu, fmt: Format, rows: int, rounds: int) -> Measured:
    """Check ordinary and edge operands bit for bit and time every order."""
    names = MATVEC[fmt]
    tiny = (
        random_weights(fmt, 512, COLS, 3, edge=True),
        random_activations(fmt, 1, COLS, 4, edge=True),
    )
    small = Case(gpu, "matvec", fmt, *tiny, names, 1)
    check("matvec, subnormal operands", fmt, *tiny, {o: small.result(o) for o in names})
    raw, act = random_weights(fmt, rows, COLS, 1), random_activations(fmt, 1, COLS, 2)
    case = Case(gpu, "matvec", fmt, raw, act, names, 6 if fmt is Format.IQ2_XXS else 3)
    got = {o: case.result(o) for o in names}
    exact, differs = check("matvec", fmt, raw, act, got)
    seconds = case.interleave(names, 2 if gpu.is_cpu else LAUNCHES, rounds)
    return Measured("matvec", fmt.name, "GB/s", raw.nbytes / 1e9, seconds, exact, differs)


def matmul_case(gpu: Gpu, fmt: Format, rows: int, rounds: int) -> Measured:
    """Check every 64th row bit for bit and time every order."""
    names, tokens = MATMUL[fmt], 512
    raw, act = random_weights(fmt, rows, COLS, 5), random_activations(fmt, tokens, COLS, 6)
    case = Case(gpu, "matmul", fmt, raw, act, names, 1)
    got = {o: np.ascontiguousarray(case.result(o)[:, ::64]) for o in names}
    exact, differs = check("matmul", fmt, np.ascontiguousarray(raw[::64]), act, got)
    seconds = case.interleave(names, 1 if gpu.is_cpu else LAUNCHES // 6, rounds)
    if "E" not in seconds:
        seconds["E"] = seconds["C"]
    return Measured(
        "matmul", fmt.name, "GMAC/s", tokens * COLS * rows / 1e9, seconds, exact, differs
    )


def measure(*, quick: bool) -> None:
    """Run every case of the card and print its table."""
    gpu = Gpu()
    rows: list[Measured] = []
    rounds = 1 if quick else ROUNDS
    for fmt in Format:
        rows.append(matvec_case(gpu, fmt, 512 if quick else 32768, rounds))
        rows.append(matmul_case(gpu, fmt, 128 if quick else 4096, rounds))
    print_table(rows, None)
