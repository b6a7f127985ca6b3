"""Products with weights, in float64 on decoded weights.

A device with 8-bit activations differs from these by its activation error; the arithmetic contract
says by how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.elementwise import swiglu
from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.arrays import F64, AnyArray


def embed(table: AnyArray, ids: AnyArray) -> F64:
    """Gather rows ``ids`` [t] of ``table`` [n, d] -> [t, d]."""
    need_tokens(len(ids), "embed")
    inside = bool(np.all((ids >= 0) & (ids < len(table))))
    need(inside, f"embed: an id is outside 0..{len(table) - 1}")
    return wide(table[ids])


@np.errstate(all="ignore")
def matmul(weight: AnyArray, x: AnyArray) -> F64:
    """Multiply x [t, in] by weight [out, in] -> [t, out]."""
    fits = x.ndim == 2 and weight.ndim == 2 and x.shape[1] == weight.shape[1]
    need(fits, "matmul: x does not fit the weight", x, weight)
    need_tokens(len(x), "matmul")
    return np.asarray(wide(x) @ wide(weight).T)


@np.errstate(all="ignore")
def head_matmul(weight: AnyArray, x: AnyArray) -> F64:
    """Multiply each head by its own matrix: x [t, h, in], weight [h, out, in] -> [t, h, out]."""
    fits = x.ndim == 3 and weight.ndim == 3 and x.shape[1:] == weight.shape[::2]
    need(fits, "head_matmul: x does not fit the weight", x, weight)
    need_tokens(len(x), "head_matmul")
    return np.stack([matmul(w, x[:, h]) for h, w in enumerate(weight)], axis=1)


def ffn(gate: AnyArray, up: AnyArray, down: AnyArray, x: AnyArray, limit: float | None) -> F64:
    """Run one clamped SwiGLU feed-forward: gate, up [f, d], down [d, f], x [t, d] -> [t, d]."""
    return matmul(down, swiglu(matmul(gate, x), matmul(up, x), limit))


def expert_ffn(
    expert: Callable[[int], tuple[F64, F64, F64]],
    x: AnyArray,
    ids: AnyArray,
    limit: float | None,
) -> F64:
    """Run the chosen experts of each token and keep their rows apart.

    Shapes: ``expert(e)`` gives gate and up [f, d] and down [d, f] of expert e; x [t, d]; ids [t, x]
            -> [t, x, d].
    Math:   row r of token t is the feed-forward of expert ids[t, r] on x[t]
    """
    need(ids.ndim == 2 and len(ids) == len(x), "expert_ffn: ids do not fit x", x, ids)
    need_tokens(len(x), "expert_ffn")
    rows = np.empty((*ids.shape, x.shape[1]))
    for e in np.unique(ids):
        token, rank = np.nonzero(ids == e)
        rows[token, rank] = ffn(*expert(int(e)), x[token], limit)
    return rows
