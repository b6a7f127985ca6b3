"""Latent attention (MLA) over cells that the pooled indexer chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import Cells
from localglm.backends.cpu.boundary import (
    array_of,
    cache_rows,
    floats,
    indices,
    is_half,
    require,
)

if TYPE_CHECKING:
    from localglm.arrays import I32
    from localglm.backends.base import Buffer
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


class LatentOps:
    """Pool keys, their scores, the choice of cells, and attention over them."""

    _native: Native
    _results: Results

    def pool_keys(self, keys: Buffer, gates: Buffer, slot_bias: Buffer) -> Buffer:
        """Compress complete pools: keys, gates [p * pool, i], slot_bias [pool, i] -> [p, i]."""
        b = floats("pool_keys slot_bias", slot_bias, None, None)
        slots, width = b.shape
        k = floats("pool_keys keys", keys, None, width)
        g = floats("pool_keys gates", gates, len(k), width)
        require(len(k) % slots == 0, "pool_keys: rows are not whole pools", k, b)
        out = self._results.empty((len(k) // slots, width))
        self._native.run(
            "lg_pool_keys", k.ctypes.data, g.ctypes.data, b.ctypes.data, out.ctypes.data,
            len(out), slots, width,
        )  # fmt: skip
        return out

    def indexer_scores(
        self, query: Buffer, head_weight: Buffer, pools: Buffer, first_position: int, pool: int
    ) -> Buffer:
        """sum_g w_g * relu(q_g . pi_p) / sqrt(i * g): query [t, g, i], pools [>= P, i] -> [t, P].

        P = (first_position + t) // pool. Pools not complete at a token's position score -inf.
        """
        q = floats("indexer_scores query", query, None, None, None)
        t, heads, width = q.shape
        w = floats("indexer_scores head_weight", head_weight, t, heads)
        keys = cache_rows("indexer_scores pools", pools, width)
        shown = (first_position + t) // pool
        require(len(keys) >= shown, f"indexer_scores: {shown} pools are complete", keys)
        out = self._results.empty((t, shown), room=t * len(keys))
        self._native.run(
            "lg_indexer_scores", q.ctypes.data, w.ctypes.data, keys.ctypes.data, is_half(keys),
            out.ctypes.data, t, heads, width, shown, first_position, pool,
        )  # fmt: skip
        return out

    def select_cells(
        self, scores: Buffer, first_position: int, pool: int, pools_kept: int, select_tail: bool
    ) -> Cells:
        """Choose the best pools per token (ties: lower pool) and the open pool's tokens.

        Raises: NumericFaultError when a score is NaN.
        """
        x = array_of(scores)
        is_row_major = x.dtype == np.float32 and x.flags.c_contiguous
        require(x.ndim == 2 and len(x) > 0 and is_row_major, "select_cells: not float32 [t, P]", x)
        count = _counts(len(x), first_position, pool, pools_kept, select_tail=select_tail)
        complete = (first_position + len(x)) // pool
        require(x.shape[1] >= complete, f"select_cells: {complete} pools are complete", x)
        index = np.empty((len(x), int(count.max())), np.int32)
        self._native.run(
            "lg_select_cells", x.ctypes.data, index.ctypes.data, count.ctypes.data,
            *x.shape, index.shape[1], first_position, pool, pools_kept, select_tail,
        )  # fmt: skip
        return Cells(index, count)

    def dense_cells(self, count: int, first_position: int) -> Cells:
        """Every cell up to itself for each of ``count`` tokens: dense attention."""
        require(count > 0, f"dense_cells: {count} tokens")
        seen = np.arange(first_position + 1, first_position + count + 1, dtype=np.int32)
        cell = np.arange(first_position + count, dtype=np.int32)
        return Cells(cell * (cell < seen[:, None]), seen)

    def mla_attend(self, query: Buffer, latents: Buffer, cells: Cells, scale: float) -> Buffer:
        """Softmax attention in latent space: query [t, h, l], latents [cap, l] -> [t, h, l].

        A token without cells has no softmax: its row is NaN.
        """
        q = floats("mla_attend query", query, None, None, None)
        t, heads, width = q.shape
        rows = cache_rows("mla_attend latents", latents, width)
        index = indices("mla_attend index", cells.index, t, None)
        count = indices("mla_attend count", cells.count, t)
        out = self._results.empty(q.shape)
        self._native.run(
            "lg_mla_attend", q.ctypes.data, rows.ctypes.data, is_half(rows), index.ctypes.data,
            count.ctypes.data, out.ctypes.data, t, heads, width, index.shape[1], len(rows), scale,
        )  # fmt: skip
        return out


def _counts(t: int, first_position: int, pool: int, pools_kept: int, *, select_tail: bool) -> I32:
    """Cells each token attends: they depend on its position only."""
    seen = np.arange(first_position + 1, first_position + t + 1, dtype=np.int32)
    complete = seen // pool
    count = np.minimum(complete, pools_kept) * pool
    return count + (seen - complete * pool) if select_tail else count
