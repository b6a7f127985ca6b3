"""Products of stored weights; the arithmetic is that of docs/design/arithmetic.md, in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.cpu.boundary import CpuMatrix, floats, stored
from localglm.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.backends.base import Buffer, Matrix
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


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
