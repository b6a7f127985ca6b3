"""Norms over the last axis; the epsilon is added inside the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.elementwise import logistic
from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, AnyArray


@np.errstate(all="ignore")
def rms_norm(x: AnyArray, weight: AnyArray, epsilon: float) -> F64:
    """Scale each row to unit root mean square.

    Shapes: x [..., c], weight [c] as stored (nothing is added to it).
    Math:   weight * x / sqrt(mean(x^2) + epsilon)
    """
    need(weight.shape == x.shape[-1:], "rms_norm: weight does not fit the rows", x, weight)
    need_tokens(len(x), "rms_norm")
    x = wide(x)
    mean_square = np.mean(x * x, axis=-1, keepdims=True)
    return np.asarray(wide(weight) * x / np.sqrt(mean_square + epsilon))


@np.errstate(all="ignore")
def layer_norm(x: AnyArray, weight: AnyArray, bias: AnyArray, epsilon: float) -> F64:
    """Centre each row and scale it to unit variance.

    Shapes: x [..., c], weight and bias [c].
    Math:   weight * (x - mean) / sqrt(var + epsilon) + bias, var divided by c (biased)
    """
    fits = weight.shape == bias.shape == x.shape[-1:]
    need(fits, "layer_norm: weight or bias does not fit the rows", x, weight, bias)
    need_tokens(len(x), "layer_norm")
    x = wide(x)
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return np.asarray(wide(weight) * centred / np.sqrt(variance + epsilon) + wide(bias))


@np.errstate(all="ignore")
def gated_norm(x: AnyArray, weight: AnyArray, gate: AnyArray, epsilon: float) -> F64:
    """Norm each head on its own, then gate it.

    Shapes: x and gate [t, h, v], weight [v] shared by all heads.
    Math:   rms_norm(x; weight) * sigmoid(gate)
    """
    need(x.shape == gate.shape, "gated_norm: gate does not fit", x, gate)
    return rms_norm(x, weight, epsilon) * logistic(gate)
