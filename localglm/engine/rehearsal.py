"""What a chunk of a prompt needs beside weights and caches: the graph is run without computing.

The graph and the processor's device run as they are, on a library that only notes the memory its
ops would take. Results are allocated and never touched, which costs address space alone; so the
account follows every change of the graph by itself.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from localglm.backends.cpu.device import CpuDevice
from localglm.backends.cpu.experts import ExpertFields
from localglm.model.geometry import AttentionKind, Geometry
from localglm.model.graph import Model
from localglm.model.layer_state import KdaState, MlaState, OpenPool, RowCache
from localglm.model.load import load_surveyed
from localglm.model.state import State
from localglm.quant.types import Family, StorageType

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.arrays import U8
    from localglm.backends.base import MemoryReport
    from localglm.backends.cpu.library import Native
    from localglm.gguf import ModelFile
    from localglm.model.inventory import Survey

_SMALL = 4 << 20  # a tensor above it is a matrix, whose bytes nobody reads here
_ROW = 48  # an lg_row of csrc/lg_weights.h
_PAIR = (
    2 * _ROW + 3 * 8 + 16
)  # rows and addresses that csrc/lg_experts.c keeps per token and expert
_PANEL = 5760 + 8 * 16 * 4  # of 256 columns of one thread: lg_panel_bytes of csrc/lg_blocks.h
_BETWEEN_BLOCKS = 20  # the C library keeps a 20th more (docs/measurements/memory.md)
_SWEEPS = 2 * 4096  # results for which memory nobody asks for is kept


@dataclass(frozen=True, slots=True)
class Scratch:
    """Bytes: ``vectors`` that loading copies, ``chunk`` that the largest chunk needs at most."""

    vectors: int
    chunk: int


def rehearse(
    file: ModelFile, found: Survey, device: CpuDevice, *, context: int, chunk: int, cache_type: str
) -> Scratch:
    """Run the last chunks of a full context without computing."""
    noting = _NotingNative(device.isa, device.threads)
    dry = CpuDevice(native=cast("Native", noting))
    noting.held = weakref.WeakMethod(dry.memory)
    geometry, weights = load_surveyed(cast("ModelFile", _Blank(file)), found, dry)
    vectors = dry.memory().buffers
    model = Model(geometry, weights, dry)
    count = min(chunk, context)
    first = max(0, context - count * _chunks_that_leave_traces(model, context, count, cache_type))
    state = _state_at(dry, geometry, first, context, cache_type)
    noting.begin(vectors + state.nbytes)
    for start in range(first, context, count):
        model.forward(state, [0] * min(count, context - start), logits="last")
    return Scratch(vectors, noting.most + noting.most // _BETWEEN_BLOCKS)


def _chunks_that_leave_traces(model: Model, context: int, count: int, cache_type: str) -> int:
    """Return after how many chunks the memory of a result that none of them has is given back."""
    device = cast("CpuDevice", model.device)
    before = device.results_lent
    state = _state_at(device, model.geometry, context - count, context, cache_type)
    model.forward(state, [0] * count, logits="last")
    return 2 + _SWEEPS // (device.results_lent - before)


def _state_at(
    device: CpuDevice, geometry: Geometry, position: int, context: int, cache_type: str
) -> State:
    """Return a state that has seen ``position`` tokens, its caches grown to the full context."""
    layers: list[KdaState | MlaState] = []
    for layer in geometry.layers:
        if layer.attention is AttentionKind.KDA:
            layers.append(KdaState.new(device, geometry))
            continue
        pool = geometry.indexer.pool
        latents = _full(device, geometry.mla.latent, cache_type, context, position)
        pools = max(1, context // pool)
        keys = _full(device, geometry.indexer.width, cache_type, pools, position // pool)
        layers.append(MlaState(device, pool, latents, keys, _open_pool(device, geometry, position)))
    state = State(device, geometry, tuple(layers), context)
    state.commit([0] * position)
    return state


def _open_pool(device: CpuDevice, geometry: Geometry, position: int) -> OpenPool:
    count = position % geometry.indexer.pool
    if count == 0:
        return OpenPool(None, None)
    shape = (count, geometry.indexer.width)
    return OpenPool(device.alloc(shape), device.alloc(shape))


def _full(device: CpuDevice, width: int, dtype: str, limit: int, count: int) -> RowCache:
    return RowCache(device, width, dtype, limit, device.alloc((limit, width), dtype), count)


@dataclass(frozen=True, slots=True)
class _Blank:
    """A file whose vectors are zeros, so that nothing of it is read."""

    file: ModelFile

    def data(self, name: str) -> U8:
        info = self.file.tensors[name]
        return np.zeros(info.nbytes, np.uint8) if info.nbytes <= _SMALL else self.file.data(name)


class _NotingNative:
    """Takes the place of the native library: computes nothing, notes the memory in use."""

    held: weakref.WeakMethod[Callable[[], MemoryReport]]

    def __init__(self, isa: str, threads: int) -> None:
        self.isa = isa
        self.threads = threads
        self.most = 0
        self._apart = 0
        self._weaves = isa == "avx512"
        self._panel = _PANEL if isa in {"avx2", "neon"} else 0

    def begin(self, apart: int) -> None:
        """Count from here on what is held beside ``apart`` bytes."""
        self.most, self._apart = 0, apart

    def run(self, op: str, *arguments: Any) -> None:
        """Note what is held while ``op`` runs."""
        memory = self.held()
        assert memory is not None, "the device that runs an op is there"
        held = memory().buffers - self._apart
        self.most = max(self.most, held + self._own(op, arguments))

    def is_finite(self, address: int, count: int) -> bool:  # noqa: ARG002 - the library's form
        """Say yes."""
        return True

    def close(self) -> None:
        """Do nothing: there are no workers."""

    def _own(self, op: str, a: tuple[Any, ...]) -> int:
        """Return the memory an op takes for itself (csrc/lg_weights.c, lg_experts.c)."""
        match op:
            case "lg_expert_ffn":
                return self._experts(ExpertFields.from_address(a[1]), a[4], a[4] * a[5])
            case "lg_matmul":
                return self._activations(a[1], a[6], a[4])
            case "lg_matmuls":
                return self._activations(StorageType.Q4_K.value.ggml_id, a[5], a[3])
            case "lg_head_matmul":
                return self._activations(a[1], a[3] * a[7], a[5])
            case "lg_mla_attend":
                # the lists of cells, of this layer and the one before
                return int(a[6] * a[9]) * 4 * 2
            case _:
                return 0

    def _experts(self, e: ExpertFields, tokens: int, pairs: int) -> int:
        hidden = 2 * pairs * e.f * ctypes.sizeof(ctypes.c_float)
        sides = self._activations(e.gate_type, tokens, e.d)
        if StorageType.from_ggml_id(e.up_type) != StorageType.from_ggml_id(e.gate_type):
            sides *= 2
        down = self._activations(e.down_type, pairs, e.f)
        panels = self.threads * -(-max(e.d, e.f) // 256) * self._panel
        return int(hidden + sides + down + pairs * _PAIR + panels)

    def _activations(self, ggml_id: int, count: int, columns: int) -> int:
        """Return the bytes of ``count`` quantised rows."""
        found = StorageType.from_ggml_id(ggml_id)
        padded = -(-columns // 256) * 256
        if found is None or found.family is Family.FLOAT:
            return count * _ROW
        if found.family is Family.RUN32:
            return count * (_ROW + padded + padded * 6 // 32)
        woven = padded * 9 // 8 if self._weaves else 0
        return count * (_ROW + padded + padded * 4 // 256 + padded * 2 // 16 + woven)
