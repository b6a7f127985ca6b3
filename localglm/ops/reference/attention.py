"""Latent attention (MLA), absorbed form: one cached row per token is key and value of all heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, AnyArray


@np.errstate(all="ignore")
def store_rows(cache: AnyArray, rows: AnyArray, start: int) -> None:
    """Write rows [t, c] into cache [capacity, c] from row ``start``, in place, in its type."""
    need(cache.ndim == 2 and rows.shape[1:] == cache.shape[1:], "store_rows: width", cache, rows)
    need_tokens(len(rows), "store_rows")
    fits = start >= 0 and start + len(rows) <= len(cache)
    need(fits, f"store_rows: rows from {start} on do not fit the cache", cache, rows)
    cache[start : start + len(rows)] = rows


@np.errstate(all="ignore")
def mla_attend(
    query: AnyArray, latents: AnyArray, index: AnyArray, count: AnyArray, scale: float
) -> F64:
    """Attend the chosen cells in latent space.

    Shapes: query [t, h, l], latents [capacity, l], index [t, c], count [t] -> [t, h, l]
    Math:   s_c = scale * (q_h . latent_c); w = softmax over the cells; out_h = sum_c w_c latent_c
    Range:  a token without cells has no softmax: its row is NaN.
    """
    t, _, width = query.shape
    fits = latents.shape[1:] == (width,) and len(index) == len(count) == t
    need(fits, "mla_attend: arrays do not belong together", query, latents, index, count)
    need_tokens(t, "mla_attend")
    query = wide(query)
    out = np.full(query.shape, np.nan)
    for m, cells in enumerate(int(c) for c in count):
        if cells:
            rows = wide(latents[index[m, :cells]])
            scores = scale * (query[m] @ rows.T)
            weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
            out[m] = (weights @ rows) / np.sum(weights, axis=-1, keepdims=True)
    return out
