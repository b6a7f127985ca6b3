"""ReferenceDevice: float64 host arrays behind the ``Device`` contract; ops are in ``ops.py``."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import FusedOps, MemoryReport
from localglm.backends.reference.ops import ReferenceOps, array_of
from localglm.backends.reference.weights import (
    DecodedPieces,
    ReferenceExperts,
    ReferenceMatrix,
)
from localglm.errors import ShapeError

if TYPE_CHECKING:
    from localglm.arrays import AnyArray
    from localglm.backends.base import Buffer, ExpertHome, Experts, StoredExperts, StoredMatrix

_DTYPES = {"f32": np.float64, "f16": np.float16, "i32": np.int32}


class ReferenceDevice(ReferenceOps):
    """The float64 definitions as a device; "f16" buffers really are float16.

    ``decoded_bytes`` bounds the float64 copies of weights kept between ops.
    """

    def __init__(self, decoded_bytes: int = 1 << 30) -> None:
        super().__init__(DecodedPieces(decoded_bytes))
        self._mapped_bytes = 0
        self._buffer_bytes = 0

    @property
    def name(self) -> str:
        """Backend name shown to the user."""
        return "reference"

    @property
    def fused(self) -> FusedOps:
        """Nothing: the reference runs every op as it is defined."""
        return FusedOps()

    def matrix(self, stored: StoredMatrix) -> ReferenceMatrix:
        """Wrap a weight's bytes; nothing is decoded yet."""
        self._mapped_bytes += stored.data.nbytes
        return ReferenceMatrix.of(stored)

    def experts(self, stored: StoredExperts, home: ExpertHome | None = None) -> ReferenceExperts:
        """Wrap a layer's experts; they are read from the mapped file whether or not they fit."""
        del home
        return ReferenceExperts(
            self.matrix(stored.gate), self.matrix(stored.up), self.matrix(stored.down)
        )

    def expect_experts(self, experts: Experts, ids: Buffer, *, certain: bool) -> None:
        """Do nothing: the file is mapped."""

    def upload(self, array: AnyArray) -> Buffer:
        """Copy a host array: floats to float64, integers to int32."""
        is_float = np.issubdtype(array.dtype, np.floating)
        return self._counted(np.array(array, dtype=np.float64 if is_float else np.int32))

    def alloc(self, shape: tuple[int, ...], dtype: str = "f32") -> Buffer:
        """Allocate zeros; "f32" is float64 here."""
        if dtype not in _DTYPES:
            raise ShapeError(f"alloc: unknown type {dtype!r}", why=f"one of {', '.join(_DTYPES)}")
        return self._counted(np.zeros(shape, dtype=_DTYPES[dtype]))

    def download(self, buffer: Buffer) -> AnyArray:
        """Copy a buffer; it keeps the type it has here."""
        return array_of(buffer).copy()

    def reshape(self, buffer: Buffer, shape: tuple[int, ...]) -> Buffer:
        """Return a view with another shape."""
        array = array_of(buffer)
        if not array.flags.c_contiguous or array.size != np.prod(shape, dtype=np.int64):
            raise ShapeError(f"reshape: {array.shape} is not {shape}")
        return array.reshape(shape)

    def rows(self, buffer: Buffer, start: int, stop: int) -> Buffer:
        """Return a view of rows [start, stop)."""
        array = array_of(buffer)
        if not 0 <= start <= stop <= len(array):
            raise ShapeError(f"rows: {start}..{stop} of {array.shape}")
        return array[start:stop]

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Overwrite ``target`` with ``source``."""
        to, of = array_of(target), array_of(source)
        if to.shape != of.shape or to.dtype != of.dtype:
            raise ShapeError(f"copy: {of.shape} {of.dtype} into {to.shape} {to.dtype}")
        to[...] = of

    def is_finite(self, buffer: Buffer) -> bool:
        """Whether a buffer holds neither an infinity nor a NaN."""
        return bool(np.isfinite(array_of(buffer)).all())

    def sync(self) -> None:
        """Return at once: every op has run when it returns."""

    def memory(self) -> MemoryReport:
        """Return decoded weights, buffers allocated or uploaded and still alive, wrapped bytes."""
        return MemoryReport(self.decoded.nbytes, self._buffer_bytes, self._mapped_bytes)

    def tidy(self) -> None:
        """Do nothing: nothing is kept for later results."""

    def close(self) -> None:
        """Forget the decoded weights; buffers go with their last reference."""
        self.decoded.clear()

    def _counted(self, array: AnyArray) -> AnyArray:
        self._buffer_bytes += array.nbytes
        weakref.finalize(array, self._release, array.nbytes)
        return array

    def _release(self, nbytes: int) -> None:
        self._buffer_bytes -= nbytes
