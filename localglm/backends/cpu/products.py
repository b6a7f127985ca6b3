"""Products of stored weights; the arithmetic is that of docs/design/arithmetic.md, in C."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from localglm.backends.cpu.boundary import CpuMatrix, floats, stored
from localglm.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.backends.base import Buffer, Matrix
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


class _Product(ctypes.Structure):
    """``lg_product`` of csrc/lg_products.h."""

    _fields_: ClassVar = [
        ("w", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("type", ctypes.c_int32),
    ]


def _id(matrix: CpuMatrix) -> int:
    return matrix.type.value.ggml_id


class ProductOps:
    """Embedding rows, products, and products per head."""

    _native: Native
    _results: Results
    _exact: int

    def embed(self, table: Matrix, ids: Sequence[int]) -> Buffer:
        """Decode rows ``ids`` of ``table`` [n, d] -> [t, d]."""
        held = stored(table, 2)
        asked = np.array(ids, dtype=np.int64)
        if asked.ndim != 1 or not asked.size:
            raise ShapeError("embed: empty chunk", why="a chunk holds at least one token")
        out = self._results.empty((len(asked), held.shape[1]))
        self._native.run(
            "lg_embed", _id(held), held.address, *held.shape,
            asked.ctypes.data, len(asked), out.ctypes.data,
        )  # fmt: skip
        return out

    def matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply x [t, in] by weight [out, in] -> [t, out]."""
        held = stored(weight, 2)
        rows = floats(held.name, x, None, held.shape[1])
        out = self._results.empty((len(rows), held.shape[0]))
        self._native.run(
            "lg_matmul", self._exact, _id(held), held.address, *held.shape,
            rows.ctypes.data, len(rows), out.ctypes.data,
        )  # fmt: skip
        return out

    def products(self, weights: Sequence[Matrix], x: Buffer) -> tuple[Buffer, ...]:
        """Multiply the same x [t, in] by several weights [out, in] -> one [t, out] each."""
        held = [stored(weight, 2) for weight in weights]
        width = held[0].shape[1]
        for one in held:
            if one.shape[1] != width:
                raise ShapeError(f"{one.name}: {one.shape} and {held[0].shape} take different rows")
        rows = floats(held[0].name, x, None, width)
        outs = tuple(self._results.empty((len(rows), one.shape[0])) for one in held)
        asked = (_Product * len(held))(
            *(_Product(one.address, out.ctypes.data, one.shape[0], _id(one))
              for one, out in zip(held, outs, strict=True))
        )  # fmt: skip
        self._native.run(
            "lg_matmuls", self._exact, ctypes.addressof(asked), len(held), width,
            rows.ctypes.data, len(rows),
        )  # fmt: skip
        return outs

    def head_matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply per head: x [t, h, in] by weight [h, out, in] -> [t, h, out]."""
        held = stored(weight, 3)
        heads, out_width, in_width = held.shape
        rows = floats(held.name, x, None, heads, in_width)
        out = self._results.empty((len(rows), heads, out_width))
        self._native.run(
            "lg_head_matmul", self._exact, _id(held), held.address, heads, out_width, in_width,
            rows.ctypes.data, len(rows), out.ctypes.data,
        )  # fmt: skip
        return out
