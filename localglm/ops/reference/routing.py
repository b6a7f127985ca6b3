"""Expert choice and the weighted sum of expert rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.elementwise import logistic
from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, I32, AnyArray

ROUTER_EPSILON = 1e-20
"""Added to the sum of the chosen probabilities."""


@np.errstate(all="ignore")
def route(
    logits: AnyArray, bias: AnyArray, used: int, scale: float, forced: AnyArray | None = None
) -> tuple[I32, F64]:
    """Choose experts and weigh them.

    Shapes: logits [t, e], bias [e] -> ids [t, x] best first, weights [t, x]; ``forced`` [t, x]
            replaces the choice.
    Math:   P = sigmoid(logits); ids = the ``used`` largest of P + bias (ties: lower expert);
            w = scale * P[ids] / (sum of P[ids] + 1e-20). The bias steers the choice, never the
            weights.
    """
    need(logits.ndim == 2 and bias.shape == logits.shape[1:], "route: bias", logits, bias)
    need_tokens(len(logits), "route")
    need(1 <= used <= logits.shape[1], f"route: {used} experts of {logits.shape[1]}")
    chance = logistic(logits)
    if forced is None:
        ids = np.argsort(-(chance + wide(bias)), axis=-1, kind="stable")[:, :used]
    else:
        need(forced.shape == (len(logits), used), "route: forced ids do not fit", logits, forced)
        inside = bool(np.all((forced >= 0) & (forced < logits.shape[1])))
        need(inside, f"route: a forced id is outside 0..{logits.shape[1] - 1}")
        ids = np.asarray(forced)
    picked = np.take_along_axis(chance, ids.astype(np.int64), axis=-1)
    weights = scale * picked / (np.sum(picked, axis=-1, keepdims=True) + ROUTER_EPSILON)
    return ids.astype(np.int32), np.asarray(weights)


@np.errstate(all="ignore")
def combine(rows: AnyArray, weights: AnyArray, shared: AnyArray) -> F64:
    """Add the expert rows in rank order and the shared expert last, with weight 1.

    Shapes: rows [t, x, d], weights [t, x], shared [t, d] -> [t, d]
    Math:   y = sum_r weights[r] * rows[r], then y + shared
    """
    t, used, width = rows.shape
    fits = weights.shape == (t, used) and shared.shape == (t, width)
    need(fits, "combine: arrays do not belong together", rows, weights, shared)
    need_tokens(t, "combine")
    total = np.zeros((t, width))
    for r in range(used):
        total += wide(weights)[:, r, None] * wide(rows)[:, r]
    return total + wide(shared)
