"""Element-wise ops: logistic function, SiLU, clamped SwiGLU, sum and join.

NaN and Inf propagate as IEEE arithmetic gives them; no warning escapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, AnyArray


@np.errstate(all="ignore")
def sigmoid(x: AnyArray) -> F64:
    """Return 1 / (1 + exp(-x)), element by element."""
    need_tokens(len(x), "sigmoid")
    return logistic(x)


@np.errstate(all="ignore")
def logistic(x: AnyArray) -> F64:
    """Return 1 / (1 + exp(-x)) of an array of any length."""
    return np.asarray(1.0 / (1.0 + np.exp(-wide(x))))


@np.errstate(all="ignore")
def silu(x: AnyArray) -> F64:
    """Return x / (1 + exp(-x)), element by element."""
    x = wide(x)
    return np.asarray(x / (1.0 + np.exp(-x)))


@np.errstate(all="ignore")
def swiglu(gate: AnyArray, up: AnyArray, limit: float | None) -> F64:
    """Return the gated product; the gate is cut from above only, and before SiLU.

    Shapes: gate, up and result [t, f].
    Math:   silu(min(gate, limit)) * min(max(up, -limit), limit); ``limit`` None means no clamp.
    """
    need(gate.shape == up.shape, "swiglu: gate and up differ", gate, up)
    need_tokens(len(gate), "swiglu")
    gate, up = wide(gate), wide(up)
    if limit is not None:
        gate = np.minimum(gate, limit)
        up = np.maximum(np.minimum(up, limit), -limit)
    return np.asarray(silu(gate) * up)


@np.errstate(all="ignore")
def add(x: AnyArray, y: AnyArray) -> F64:
    """Return x + y of the same shape."""
    need(x.shape == y.shape, "add: shapes differ", x, y)
    need_tokens(len(x), "add")
    return wide(x) + wide(y)


def concat(x: AnyArray, y: AnyArray) -> F64:
    """Join [t, a] and [t, b] on the last axis -> [t, a + b], ``x`` first."""
    need(x.ndim == 2 and y.ndim == 2 and len(x) == len(y), "concat: token counts differ", x, y)
    need_tokens(len(x), "concat")
    return np.concatenate([wide(x), wide(y)], axis=-1)
