"""Linear attention (KDA): short convolution, per-channel decay, gated delta rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.elementwise import logistic, silu
from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, AnyArray

L2_EPSILON = 1e-6
"""Added to the sum of squares of queries and keys, inside the root."""


@np.errstate(all="ignore")
def short_conv(raw: AnyArray, filters: AnyArray, window: AnyArray) -> F64:
    """Convolve each channel causally and apply SiLU.

    Shapes: raw [t, c]; filters [c, taps]; window [taps - 1, c], oldest row first, in place -> [t,
            c]
    Math:   silu(sum_tau filters[c, tau] * raw[m - (taps - 1) + tau, c]); the last tap is the
            current token's
    """
    channels, taps = filters.shape
    fits = raw.ndim == 2 and raw.shape[1] == channels and window.shape == (taps - 1, channels)
    need(fits, "short_conv: arrays do not belong together", raw, filters, window)
    t = len(raw)
    need_tokens(t, "short_conv")
    history = np.concatenate([wide(window), wide(raw)])
    mixed = np.zeros((t, channels))
    for tau in range(taps):
        mixed += wide(filters)[:, tau] * history[tau : tau + t]
    window[...] = history[t:]
    return silu(mixed)


@np.errstate(all="ignore")
def kda_decay(raw: AnyArray, bias: AnyArray, rate: AnyArray, lower_bound: float) -> F64:
    """Return the log decay per head and key channel, between ``lower_bound`` and 0.

    Shapes: raw [t, h*k], bias [h*k], rate [h] > 0 -> [t, h, k]
    Math:   g = lower_bound * sigmoid(rate_h * (raw + bias))
    """
    heads = len(rate)
    fits = raw.ndim == 2 and bias.shape == raw.shape[1:] and raw.shape[1] % heads == 0
    need(fits, "kda_decay: arrays do not belong together", raw, bias, rate)
    need_tokens(len(raw), "kda_decay")
    shifted = (wide(raw) + wide(bias)).reshape(len(raw), heads, -1)
    return lower_bound * logistic(wide(rate)[:, None] * shifted)


@np.errstate(all="ignore")
def unit_rows(x: AnyArray) -> F64:
    """Divide rows by sqrt(sum(x^2) + 1e-6); a zero row stays zero."""
    x = wide(x)
    return np.asarray(x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + L2_EPSILON))


@np.errstate(all="ignore")
def kda_scan(
    query: AnyArray,
    key: AnyArray,
    value: AnyArray,
    decay: AnyArray,
    beta: AnyArray,
    state: AnyArray,
) -> F64:
    """Run the gated delta rule token by token.

    Shapes: query, key, decay [t, h, k]; value [t, h, v]; beta [t, h] in (0, 1); state [h, k, v] in
            place -> [t, h, v]
    Math:   q = l2(q) / sqrt(k); k = l2(k); M = diag(exp(decay)) M; e = beta (value - M^T k); M = M
            + k e^T; o = M^T q
    """
    t, heads, width = query.shape
    fits = key.shape == query.shape == decay.shape and beta.shape == (t, heads)
    fits = fits and value.shape[:2] == (t, heads) and state.shape == (heads, width, value.shape[2])
    need(fits, "kda_scan: arrays do not belong together", query, key, value, decay, beta, state)
    need_tokens(t, "kda_scan")
    query, key = unit_rows(query) / np.sqrt(width), unit_rows(key)
    value, beta, kept = wide(value), wide(beta), np.exp(wide(decay))
    memory = wide(state)
    out = np.empty(value.shape)
    for m in range(t):
        memory = kept[m][:, :, None] * memory
        recalled = np.einsum("hkv,hk->hv", memory, key[m])
        delta = beta[m][:, None] * (value[m] - recalled)
        memory = memory + key[m][:, :, None] * delta[:, None]
        out[m] = np.einsum("hkv,hk->hv", memory, query[m])
    state[...] = memory
    return out
