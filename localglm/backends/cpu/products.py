"""Products of stored weights; the arithmetic is that of docs/design/arithmetic.md, in C."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from localglm.backends.cpu.boundary import CpuMatrix, empty, floats, indices, require, stored
from localglm.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.backends.base import Buffer, Matrix
    from localglm.backends.cpu.library import Native


class _Experts(ctypes.Structure):
    """``lg_experts`` of csrc/lg_products.h."""

    _fields_: ClassVar = [
        ("gate", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("down", ctypes.c_void_p),
        ("gate_type", ctypes.c_int32),
        ("up_type", ctypes.c_int32),
        ("down_type", ctypes.c_int32),
        ("has_limit", ctypes.c_int32),
        ("experts", ctypes.c_int64),
        ("d", ctypes.c_int64),
        ("f", ctypes.c_int64),
        ("limit", ctypes.c_float),
    ]


def _id(matrix: CpuMatrix) -> int:
    return matrix.type.value.ggml_id


class ProductOps:
    """Embedding rows, products, products per head, and the chosen experts."""

    _native: Native
    _exact: int

    def embed(self, table: Matrix, ids: Sequence[int]) -> Buffer:
        """Decode rows ``ids`` of ``table`` [n, d] -> [t, d]."""
        held = stored(table, 2)
        asked = np.array(ids, dtype=np.int64)
        if asked.ndim != 1 or not asked.size:
            raise ShapeError("embed: empty chunk", why="a chunk holds at least one token")
        out = empty((len(asked), held.shape[1]))
        self._native.run(
            "lg_embed", _id(held), held.address, *held.shape,
            asked.ctypes.data, len(asked), out.ctypes.data,
        )  # fmt: skip
        return out

    def matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply x [t, in] by weight [out, in] -> [t, out]."""
        held = stored(weight, 2)
        rows = floats(held.name, x, None, held.shape[1])
        out = empty((len(rows), held.shape[0]))
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
        out = empty((len(rows), heads, out_width))
        self._native.run(
            "lg_head_matmul", self._exact, _id(held), held.address, heads, out_width, in_width,
            rows.ctypes.data, len(rows), out.ctypes.data,
        )  # fmt: skip
        return out

    def expert_ffn(
        self, gate: Matrix, up: Matrix, down: Matrix, x: Buffer, ids: Buffer, limit: float | None
    ) -> Buffer:
        """Clamped SwiGLU of the chosen experts: x [t, d], ids [t, x] -> [t, x, d]."""
        g, u, w = stored(gate, 3), stored(up, 3), stored(down, 3)
        experts, f, d = g.shape
        if u.shape != g.shape or w.shape != (experts, d, f):
            raise ShapeError(f"{g.name}: {g.shape}, {u.shape} and {w.shape} are not one layer")
        rows = floats("expert_ffn x", x, None, d)
        chosen = indices("expert_ffn ids", ids, len(rows), None)
        require(chosen.size > 0, "expert_ffn: no expert was chosen", chosen)
        layer = _Experts(
            g.address, u.address, w.address, _id(g), _id(u), _id(w),
            limit is not None, experts, d, f, limit or 0.0,
        )  # fmt: skip
        out = empty((*chosen.shape, d))
        self._native.run(
            "lg_expert_ffn", self._exact, ctypes.addressof(layer), rows.ctypes.data,
            chosen.ctypes.data, *chosen.shape, out.ctypes.data,
        )  # fmt: skip
        return out
