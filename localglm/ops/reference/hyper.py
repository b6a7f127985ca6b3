"""Hyper-connections (mHC): parallel residual streams, mixed by doubly stochastic matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.elementwise import logistic
from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, AnyArray


def spread(x: AnyArray, streams: int) -> F64:
    """Copy x [t, d] into every stream -> [t, s, d]."""
    need(x.ndim == 2, "spread: x is not [t, d]", x)
    need_tokens(len(x), "spread")
    return np.repeat(wide(x)[:, None], streams, axis=1)


@np.errstate(all="ignore")
def stream_mean(streams: AnyArray) -> F64:
    """Average the streams without weights: [t, s, d] -> [t, d]."""
    need(streams.ndim == 3, "stream_mean: streams are not [t, s, d]", streams)
    need_tokens(len(streams), "stream_mean")
    return np.asarray(np.mean(wide(streams), axis=1))


@np.errstate(all="ignore")
def sinkhorn(logits: AnyArray, rounds: int, epsilon: float) -> F64:
    """Turn [..., source, destination] logits into nearly doubly stochastic matrices.

    Math:   C = softmax over destinations + epsilon; C = C / (column sums + epsilon);
            rounds - 1 times: rows, then columns. The last step is a column step.
    """
    need(rounds >= 1, f"sinkhorn: {rounds} rounds")
    logits = wide(logits)
    shifted = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    comb = shifted / np.sum(shifted, axis=-1, keepdims=True) + epsilon
    comb = comb / (np.sum(comb, axis=-2, keepdims=True) + epsilon)
    for _ in range(rounds - 1):
        comb = comb / (np.sum(comb, axis=-1, keepdims=True) + epsilon)
        comb = comb / (np.sum(comb, axis=-2, keepdims=True) + epsilon)
    return np.asarray(comb)


@np.errstate(all="ignore")
def hyper_pre(
    streams: AnyArray,
    fn: AnyArray,
    base: AnyArray,
    scale: AnyArray,
    *,
    rounds: int,
    epsilon: float,
    norm_epsilon: float,
) -> tuple[F64, F64, F64]:
    """Collapse the streams for one site and compute how its output is written back.

    Shapes: streams [t, s, d], fn [s(2+s), s*d], base [s(2+s)], scale [3] ->
            input [t, d], post [t, s], comb [t, source, destination]
    Math:   z = flatten(X), stream 0 first; z = z / sqrt(mean(z^2) + norm_epsilon); m = fn z;
            pre = sigmoid(m[:s] * scale[0] + base[:s]) + epsilon;
            post = 2 sigmoid(m[s:2s] * scale[1] + base[s:2s]);
            comb = sinkhorn(m[2s:] * scale[2] + base[2s:], row-major); input = sum_s pre[s] X[s]
    """
    need(streams.ndim == 3, "hyper_pre: streams are not [t, s, d]", streams)
    t, s, d = streams.shape
    fits = fn.shape == (s * (2 + s), s * d) and base.shape == fn.shape[:1] and scale.shape == (3,)
    need(fits, "hyper_pre: the site does not fit the streams", streams, fn, base, scale)
    need_tokens(t, "hyper_pre")
    streams, base, scale = wide(streams), wide(base), wide(scale)
    z = streams.reshape(t, s * d)
    z = z / np.sqrt(np.mean(z * z, axis=-1, keepdims=True) + norm_epsilon)
    mix = z @ wide(fn).T
    pre = logistic(mix[:, :s] * scale[0] + base[:s]) + epsilon
    post = 2.0 * logistic(mix[:, s : 2 * s] * scale[1] + base[s : 2 * s])
    logits = (mix[:, 2 * s :] * scale[2] + base[2 * s :]).reshape(t, s, s)
    return np.einsum("ts,tsd->td", pre, streams), post, sinkhorn(logits, rounds, epsilon)


@np.errstate(all="ignore")
def hyper_post(y: AnyArray, streams: AnyArray, post: AnyArray, comb: AnyArray) -> F64:
    """Write a sublayer's output back into the streams.

    Shapes: y [t, d], streams [t, s, d], post [t, s], comb [t, source s, destination j] -> [t, s, d]
    Math:   X'[j] = post[j] * y + sum_s comb[s, j] * X[s]
    """
    t, s, d = streams.shape
    fits = y.shape == (t, d) and post.shape == (t, s) and comb.shape == (t, s, s)
    need(fits, "hyper_post: arrays do not belong together", y, streams, post, comb)
    need_tokens(t, "hyper_post")
    written = wide(post)[:, :, None] * wide(y)[:, None]
    return np.asarray(written + np.einsum("tsj,tsd->tjd", wide(comb), wide(streams)))
