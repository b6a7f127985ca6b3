"""Pooled indexer: compress tokens into pool keys, score the pools, choose the cells attended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.reference.shapes import need, need_tokens, wide

if TYPE_CHECKING:
    from localglm.arrays import F64, I32, AnyArray


@np.errstate(all="ignore")
def pool_keys(keys: AnyArray, gates: AnyArray, slot_bias: AnyArray) -> F64:
    """Compress complete pools, one softmax per channel.

    Shapes: keys and gates [p * pool, i], slot_bias [pool, i] -> [p, i]
    Math:   a[s, c] = softmax over slots s of (gate[s, c] + slot_bias[s, c]); pooled[c] = sum_s a[s,
            c] key[s, c]
    """
    pool, width = slot_bias.shape
    fits = keys.shape == gates.shape and keys.shape[1:] == (width,) and len(keys) % pool == 0
    need(fits, "pool_keys: rows are not whole pools", keys, gates, slot_bias)
    need_tokens(len(keys), "pool_keys")
    logits = wide(gates).reshape(-1, pool, width) + wide(slot_bias)
    shifted = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    share = shifted / np.sum(shifted, axis=1, keepdims=True)
    return np.asarray(np.sum(share * wide(keys).reshape(-1, pool, width), axis=1))


def complete_pools(count: int, first_position: int, pool: int) -> I32:
    """Return how many pools are complete at each of ``count`` positions; a token sees itself."""
    return ((first_position + np.arange(count, dtype=np.int32) + 1) // pool).astype(np.int32)


@np.errstate(all="ignore")
def indexer_scores(
    query: AnyArray, head_weight: AnyArray, pools: AnyArray, first_position: int, pool: int
) -> F64:
    """Score every pool for every token.

    Shapes: query [t, g, i], head_weight [t, g], pools [>= P, i] -> [t, P], P = (first_position + t)
            // pool
    Math:   sum_g w_g * relu(q_g . pi_p) / sqrt(i * g); -inf where the pool is not complete at the
            position
    """
    t, heads, width = query.shape
    shown = (first_position + t) // pool
    fits = head_weight.shape == (t, heads) and pools.shape[1:] == (width,) and len(pools) >= shown
    need(fits, "indexer_scores: arrays do not belong together", query, head_weight, pools)
    need_tokens(t, "indexer_scores")
    raw = np.einsum("tgi,pi->tgp", wide(query), wide(pools)[:shown])
    # np.maximum keeps NaN, which a comparison would turn into 0
    scores = np.einsum("tg,tgp->tp", wide(head_weight), np.maximum(raw, 0.0))
    scores = scores / np.sqrt(width * heads)
    hidden = np.arange(shown) >= complete_pools(t, first_position, pool)[:, None]
    return np.where(hidden, -np.inf, scores)


def best_pools(scores: AnyArray, kept: int) -> AnyArray:
    """Return the ``kept`` best of ``scores`` [p], ascending; ties: lower index, NaN last."""
    order = np.argsort(-wide(scores), kind="stable")
    return np.sort(order[:kept])


def select_cells(
    scores: AnyArray, first_position: int, pool: int, pools_kept: int, *, select_tail: bool
) -> tuple[I32, I32]:
    """Choose the cells each token attends.

    Shapes: scores [t, >= P] -> index [t, c] and count [t]; entries of a row past its count are 0
            and not valid.
    Math:   the ``pools_kept`` best pools that are complete at the position, whole, plus the tokens
            of the open pool
            (outside the budget) when ``select_tail`` holds; ascending.
    """
    t = len(scores)
    need_tokens(t, "select_cells")
    complete = complete_pools(t, first_position, pool)
    need(scores.shape[1] >= complete[-1], "select_cells: a complete pool has no score", scores)
    rows = []
    for m, ready in enumerate(complete):
        chosen = best_pools(scores[m, :ready], pools_kept)
        cells = (chosen[:, None] * pool + np.arange(pool)).reshape(-1)
        tail = np.arange(ready * pool, first_position + m + 1)
        rows.append(np.concatenate([cells, tail]) if select_tail else cells)
    return padded(rows)


def dense_cells(count: int, first_position: int) -> tuple[I32, I32]:
    """Return cells 0..position per token: index [t, first_position + t], count [t]."""
    need_tokens(count, "dense_cells")
    return padded([np.arange(first_position + m + 1) for m in range(count)])


def padded(rows: list[AnyArray]) -> tuple[I32, I32]:
    """Pack rows of different length into index [t, longest] and count [t]."""
    count = np.array([len(r) for r in rows], dtype=np.int32)
    index = np.zeros((len(rows), int(count.max())), dtype=np.int32)
    for target, row in zip(index, rows, strict=True):
        target[: len(row)] = row
    return index, count
