"""CpuDevice: numpy arrays as memory, C kernels as ops. Use one device from one thread only."""

from __future__ import annotations

import weakref
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import FusedOps, MemoryReport
from localglm.backends.cpu.boundary import (
    DTYPES,
    CpuMatrix,
    array_of,
    memory_short,
    require,
    whole_floats,
)
from localglm.backends.cpu.experts import CpuExperts, ExpertOps
from localglm.backends.cpu.hyper import HyperOps
from localglm.backends.cpu.kda import KdaOps
from localglm.backends.cpu.latent import LatentOps
from localglm.backends.cpu.library import Native
from localglm.backends.cpu.products import ProductOps
from localglm.backends.cpu.results import Results
from localglm.backends.cpu.routing import RoutingOps
from localglm.backends.cpu.rows import RowOps
from localglm.errors import ShapeError

if TYPE_CHECKING:
    from localglm.arrays import AnyArray
    from localglm.backends.base import Buffer, ExpertHome, StoredExperts, StoredMatrix


class CpuDevice(ProductOps, ExpertOps, RowOps, HyperOps, KdaOps, LatentOps, RoutingOps):
    """The processor. Every op has run when it returns.

    ``threads`` None: physical cores. ``isa`` None: the best set of instructions found here; the
    results are the same bits with each. ``exact_activations``: products decode weights to float32
    and do not quantise activations; slower, for judging quantisation. ``native``: what takes the
    place of the library.
    Raises: DeviceError when the library is missing or cannot do what was asked.
    """

    def __init__(
        self, threads: int | None = None, isa: str | None = None, exact_activations: bool = False,
        native: Native | None = None,
    ) -> None:  # fmt: skip
        self._native = Native(threads, isa) if native is None else native
        self._exact = int(exact_activations)
        self._buffers = _Ledger()
        self._results = Results()
        self._mapped_bytes = 0
        self._weight_bytes = 0

    @property
    def name(self) -> str:
        """Backend name shown to the user."""
        return "cpu"

    @property
    def fused(self) -> FusedOps:
        """Runs of ops the library does in one call."""
        return FusedOps(self.products, self.gated_ffn, self.conv_scan)

    @property
    def isa(self) -> str:
        """Instruction set in use."""
        return self._native.isa

    @property
    def threads(self) -> int:
        """Threads that compute, the calling one included."""
        return self._native.threads

    @property
    def results_lent(self) -> int:
        """Results handed out so far."""
        return self._results.lent

    def matrix(self, stored: StoredMatrix) -> CpuMatrix:
        """Wrap a weight's bytes; nothing is copied."""
        held = CpuMatrix.of(stored)
        self._count(held)
        return held

    def experts(self, stored: StoredExperts, home: ExpertHome | None = None) -> CpuExperts:
        """Wrap the experts of a layer; with ``home`` their bytes are borrowed when needed."""
        held = CpuExperts.of(stored, home)
        if home is None:
            for matrix in held.stacks:
                self._count(matrix)
        return held

    def _count(self, held: CpuMatrix) -> None:
        if _is_own_memory(held.data):
            self._weight_bytes += held.data.nbytes
        else:
            self._mapped_bytes += held.data.nbytes

    def upload(self, array: AnyArray) -> Buffer:
        """Copy a host array: floats to float32, integers to int32."""
        is_float = np.issubdtype(array.dtype, np.floating)
        if not is_float and not np.issubdtype(array.dtype, np.integer):
            raise ShapeError(f"upload: {array.dtype} is neither float nor integer")
        dtype = DTYPES["f32" if is_float else "i32"]
        try:
            return self._buffers.add(np.array(array, dtype=dtype, order="C"))
        except MemoryError as error:
            raise memory_short(array.shape, dtype) from error

    def alloc(self, shape: tuple[int, ...], dtype: str = "f32") -> Buffer:
        """Allocate zeros. ``dtype`` is "f32", "f16" or "i32"."""
        if dtype not in DTYPES:
            raise ShapeError(f"alloc: unknown type {dtype!r}", why=f"one of {', '.join(DTYPES)}")
        try:
            return self._buffers.add(np.zeros(shape, DTYPES[dtype]))
        except MemoryError as error:
            raise memory_short(shape, DTYPES[dtype]) from error

    def download(self, buffer: Buffer) -> AnyArray:
        """Copy a buffer to the caller's own memory."""
        return array_of(buffer).copy()

    def reshape(self, buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
        """Return a view with another shape."""
        array = array_of(buffer)
        fits = array.flags.c_contiguous and array.size == prod(shape)
        require(fits, f"reshape: not {shape}", array)
        return array.reshape(shape)

    def rows(self, buffer: Buffer, start: int, stop: int) -> Buffer:
        """Return a view of rows [start, stop)."""
        array = array_of(buffer)
        require(0 <= start <= stop <= len(array), f"rows: {start}..{stop}", array)
        return array[start:stop]

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Overwrite ``target`` with ``source`` of the same shape and type."""
        to, of = array_of(target), array_of(source)
        if to.shape != of.shape or to.dtype != of.dtype:
            raise ShapeError(f"copy: {of.shape} {of.dtype} into {to.shape} {to.dtype}")
        np.copyto(to, of)

    def is_finite(self, buffer: Buffer) -> bool:
        """Whether a float32 buffer holds neither an infinity nor a NaN."""
        array = whole_floats("is_finite", buffer)
        return self._native.is_finite(array.ctypes.data, array.size)

    def sync(self) -> None:
        """Return at once: every op has run when it returns."""

    def memory(self) -> MemoryReport:
        """Return bytes of copied weights, of buffers and kept result memory, and of file pages."""
        held = self._buffers.nbytes + self._results.nbytes
        return MemoryReport(self._weight_bytes, held, self._mapped_bytes)

    def tidy(self) -> None:
        """Give memory of results that nobody uses back."""
        self._results.drop_idle()

    def close(self) -> None:
        """Stop the worker threads; buffers go with their last reference."""
        self._native.close()


class _Ledger:
    """Counts the bytes of arrays that are alive; views keep the array they look into."""

    def __init__(self) -> None:
        self.nbytes = 0

    def add(self, array: AnyArray) -> AnyArray:
        self.nbytes += array.nbytes
        weakref.finalize(array, self._drop, array.nbytes).atexit = False
        return array

    def _drop(self, nbytes: int) -> None:
        self.nbytes -= nbytes


def _is_own_memory(array: AnyArray) -> bool:
    """Whether the bytes were read into memory rather than mapped from a file."""
    base: object = array
    while isinstance(base, np.ndarray):
        if base.flags.owndata:
            return True
        base = base.base
    return False
