"""Cases and mistakes of the pooled indexer: keys, scores and the choice of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.cases.random import TOKENS, WIDTHS, generator, normal
from localglm.ops.reference import indexer as ref
from localglm.ops.spec import Case, OpSpec, Variant, cut

if TYPE_CHECKING:
    from localglm.arrays import F32, F64, AnyArray
    from localglm.ops.spec import Arguments, Outputs


def _key_cases() -> list[Case]:
    out = []
    shapes = [(t, 4, 33) for t in TOKENS] + [(2, 4, width) for width in WIDTHS] + [(3, 1, 32)]
    for pools, pool, width in [*shapes, (2, 16, 32)]:
        label = f"{pools} pools of {pool}, width {width}"
        source = generator(f"pool_keys {label}")
        arguments = {
            "keys": normal(source, pools * pool, width),
            "gates": normal(source, pools * pool, width, scale=2),
            "slot_bias": normal(source, pool, width),
        }
        out.append(Case(label, arguments))
    return out


def _split_pools(arguments: Arguments, first: int) -> tuple[Arguments, Arguments]:
    slot_bias = arguments["slot_bias"]
    assert isinstance(slot_bias, np.ndarray)
    head, rest = dict(arguments), dict(arguments)
    for name in ("keys", "gates"):
        head[name], rest[name] = cut(arguments[name], first * len(slot_bias))
    return head, rest


def _bias_after_softmax(keys: F64, gates: F64, slot_bias: F64) -> F64:
    share = _shares(gates, slot_bias, np.zeros_like(slot_bias)) + slot_bias
    return np.asarray((share * keys.reshape(share.shape)).sum(axis=1))


def _one_softmax_per_pool(keys: F64, gates: F64, slot_bias: F64) -> F64:
    logits = gates.reshape(-1, *slot_bias.shape) + slot_bias
    logits = np.broadcast_to(logits.mean(axis=2, keepdims=True), logits.shape)
    share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return np.asarray((share * keys.reshape(share.shape)).sum(axis=1))


def _shares(gates: F64, like: F64, bias: F64) -> F64:
    logits = np.exp(gates.reshape(-1, *like.shape) + bias)
    return np.asarray(logits / logits.sum(axis=1, keepdims=True))


def _score_cases() -> list[Case]:
    out = [_score(t, 3, 32, first, 4) for t in TOKENS for first in (0, 2, 41)]
    out += [_score(2, 2, width, 30, 4) for width in WIDTHS]
    return [*out, _score(3, 1, 32, 5, 1), _score(17, 2, 32, 20, 16), _score(3, 2, 32, 1030, 4)]


def _score(t: int, heads: int, width: int, first: int, pool: int) -> Case:
    label = f"{t}x{heads}x{width} from {first}, pools of {pool}"
    source = generator(f"indexer_scores {label}")
    arguments = {
        "query": normal(source, t, heads, width),
        "head_weight": normal(source, t, heads),
        "pools": normal(source, (first + t) // pool + 2, width),
        "first_position": first,
        "pool": pool,
    }
    return Case(label, arguments)


def _visible(outputs: Outputs) -> Outputs:
    """Flatten the visible scores; the hidden ones are told apart by where they are."""
    scores = outputs["out"]
    hidden = np.isneginf(scores)
    return {"visible": scores[~hidden], "count": (~hidden).sum(axis=1)}


def _scores_with(
    query: F64, head_weight: F64, pools: F64, first_position: int, pool: int, how: str
) -> F64:
    weight, divisor = head_weight, np.sqrt(query.shape[1] * query.shape[2])
    raw = np.einsum("tgi,pi->tgp", query, pools[: (first_position + len(query)) // pool])
    if how != "no relu":
        raw = np.maximum(raw, 0)
    if how == "softmax":
        weight = np.exp(weight) / np.exp(weight).sum(axis=1, keepdims=True)
    if how == "abs":
        weight = np.abs(weight)
    if how == "scale":
        divisor = np.sqrt(query.shape[2])
    late = 1 if how == "late" else 0
    complete = ref.complete_pools(len(query), first_position - late, pool)
    hidden = np.arange(raw.shape[2]) >= complete[:, None]
    return np.where(hidden, -np.inf, np.einsum("tg,tgp->tp", weight, raw) / divisor)


def _select_cases() -> list[Case]:
    out = []
    for t in TOKENS:
        for first in (0, 3, 13, 15, 16, 19, 60):
            for tail in (True, False):
                out += [_select(t, first, 4, 4, tail, kind) for kind in ("spread", "ties")]
    out += [_select(3, 20, 1, 5, True, "ties"), _select(17, 40, 16, 2, True, "ties")]
    return [*out, _select(2, 2050, 4, 512, True, "ties"), _select(6, 12, 4, 4, True, "zeros")]


def _select(t: int, first: int, pool: int, kept: int, tail: bool, kind: str) -> Case:
    label = f"{t} from {first}, {kept} pools of {pool}, tail={tail}, {kind}"
    source = generator(f"select_cells {label}")
    shown = (first + t) // pool
    scores = normal(source, t, shown)
    if kind == "ties":
        scores = np.round(scores)
    if kind == "zeros":
        scores = np.where(scores > 0, 0.0, -0.0).astype(np.float32)
    hidden = np.arange(shown) >= ref.complete_pools(t, first, pool)[:, None]
    arguments = {
        "scores": np.where(hidden, np.float32(-np.inf), scores),
        "first_position": first,
        "pool": pool,
        "pools_kept": kept,
        "select_tail": tail,
    }
    return Case(label, arguments)


def _define_select(
    scores: AnyArray, first_position: int, pool: int, pools_kept: int, select_tail: bool
) -> tuple[AnyArray, AnyArray]:
    return ref.select_cells(scores, first_position, pool, pools_kept, select_tail=select_tail)


def _split_select(arguments: Arguments, first: int) -> tuple[Arguments, Arguments]:
    scores, start, pool = (arguments[n] for n in ("scores", "first_position", "pool"))
    assert isinstance(scores, np.ndarray)
    assert isinstance(start, int)
    assert isinstance(pool, int)
    head: F32 = scores[:first, : (start + first) // pool]
    return (
        {**arguments, "scores": head},
        {**arguments, "scores": scores[first:], "first_position": start + first},
    )


def valid_cells(outputs: Outputs) -> Outputs:
    """Flatten the cells that count."""
    index, count = outputs["index"], outputs["count"]
    valid = np.arange(index.shape[1]) < count[:, None]
    return {"cells": index[valid], "count": count}


def _ties_to_higher(
    scores: AnyArray, first_position: int, pool: int, pools_kept: int, select_tail: bool
) -> tuple[AnyArray, AnyArray]:
    nudged = scores + np.arange(scores.shape[1]) * 1e-9
    return _define_select(nudged, first_position, pool, pools_kept, select_tail)


def _tail_counted(
    scores: AnyArray, first_position: int, pool: int, pools_kept: int, select_tail: bool
) -> tuple[AnyArray, AnyArray]:
    index, count = _define_select(scores, first_position, pool, pools_kept, select_tail)
    return index[:, : pool * pools_kept], np.minimum(count, pool * pools_kept)


def _own_pool_kept(
    scores: AnyArray, first_position: int, pool: int, pools_kept: int, select_tail: bool
) -> tuple[AnyArray, AnyArray]:
    favoured = scores.copy()
    for m in range(len(scores)):
        if (first_position + m + 1) % pool == 0:
            favoured[m, (first_position + m) // pool] = np.inf
    return _define_select(favoured, first_position, pool, pools_kept, select_tail)


def _dense_cases() -> list[Case]:
    return [
        Case(f"{t} from {first}", {"count": t, "first_position": first})
        for t in TOKENS
        for first in (0, 1, 15, 130)
    ]


def _split_dense(arguments: Arguments, first: int) -> tuple[Arguments, Arguments]:
    count, start = arguments["count"], arguments["first_position"]
    assert isinstance(count, int)
    assert isinstance(start, int)
    return (
        {"count": first, "first_position": start},
        {"count": count - first, "first_position": start + first},
    )


POOL_KEYS = OpSpec(
    name="pool_keys",
    formula="sum_s softmax_s(gate[s, c] + slot_bias[s, c]) key[s, c]",
    definition=ref.pool_keys,
    cases=_key_cases,
    splitter=_split_pools,
    variants=(
        Variant("no slot bias", lambda keys, gates, slot_bias: ref.pool_keys(
            keys, gates, 0 * slot_bias)),
        Variant("slot bias after the softmax", _bias_after_softmax),
        Variant("one softmax per pool", _one_softmax_per_pool),
        Variant("mean of the keys", lambda keys, gates, slot_bias: ref.pool_keys(
            keys, 0 * gates, 0 * slot_bias)),
    ),
)  # fmt: skip

INDEXER_SCORES = OpSpec(
    name="indexer_scores",
    formula="sum_g w_g relu(q_g . pi_p) / sqrt(i g); -inf while the pool is open",
    definition=ref.indexer_scores,
    cases=_score_cases,
    tokens=("query", "head_weight"),
    position="first_position",
    view=_visible,
    variants=(
        Variant("no relu", lambda **given: _scores_with(**given, how="no relu")),
        Variant("softmax over the head weights", lambda **given: _scores_with(
            **given, how="softmax")),
        Variant("absolute head weights", lambda **given: _scores_with(**given, how="abs")),
        Variant("not divided by the heads", lambda **given: _scores_with(**given, how="scale")),
        Variant("pool seen one token late", lambda **given: _scores_with(**given, how="late")),
    ),
)  # fmt: skip

SELECT_CELLS = OpSpec(
    name="select_cells",
    formula="best complete pools, whole, and the open pool's tokens; ascending",
    definition=_define_select,
    cases=_select_cases,
    outputs=("index", "count"),
    splitter=_split_select,
    view=valid_cells,
    variants=(
        Variant("ties to the higher pool", _ties_to_higher),
        Variant("tail never attended", lambda **given: _define_select(
            **{**given, "select_tail": False})),
        Variant("tail inside the budget", _tail_counted),
        Variant("one pool fewer", lambda **given: _define_select(
            **{**given, "pools_kept": given["pools_kept"] - 1})),
        Variant("own pool always kept", _own_pool_kept),
        Variant("everything attended", lambda **given: _define_select(
            **{**given, "pools_kept": 1 << 20})),
    ),
)  # fmt: skip

DENSE_CELLS = OpSpec(
    name="dense_cells",
    formula="cells 0..position",
    definition=ref.dense_cells,
    cases=_dense_cases,
    outputs=("index", "count"),
    splitter=_split_dense,
    view=valid_cells,
    variants=(
        Variant("a token does not see itself", lambda count, first_position: ref.dense_cells(
            count, first_position - 1 if first_position else 0)),
    ),
)  # fmt: skip
