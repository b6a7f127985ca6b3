"""The float64 definitions against loops written from the formulas with nothing but ``math``.

The recurrence is held against its chunk form, which reaches the same state by a triangular solve.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest

from localglm.ops.error import measure
from localglm.ops.registry import OPS
from localglm.ops.spec import FLOAT64, OpSpec, decoded

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.arrays import AnyArray
    from localglm.backends.base import StoredExperts
    from localglm.ops.spec import Outputs

MOST_ELEMENTS = 25_000


def sigma(x: float) -> float:
    if math.isnan(x):
        return x
    if x < -700:
        return 0.0
    return 1 / (1 + math.exp(-x))


def silu(x: float) -> float:
    return math.nan if x == -math.inf else x * sigma(x)


def low(x: float, y: float) -> float:
    return math.nan if math.isnan(x) else min(x, y)


def each(*arrays: AnyArray) -> list[tuple[float, ...]]:
    return list(zip(*(a.astype(float).reshape(-1).tolist() for a in arrays), strict=True))


def dot(a: AnyArray, b: AnyArray) -> float:
    return math.fsum(x * y for x, y in each(a, b))


def shaped(values: list[float], like: AnyArray) -> Outputs:
    return {"out": np.array(values).reshape(like.shape)}


def by_row(x: AnyArray, function: Callable[[list[float]], list[float]]) -> Outputs:
    rows = x.astype(float).reshape(-1, x.shape[-1]).tolist()
    return {"out": np.array([function(r) for r in rows]).reshape(x.shape)}


# -- one loop per op -----------------------------------------------------------------------------
def loop_embed(table: object, ids: list[int]) -> Outputs:
    rows = decoded(table)
    return {"out": np.array([[float(v) for v in rows[i]] for i in ids])}


def product(weight: AnyArray, x: AnyArray) -> AnyArray:
    return np.array([[dot(w, row) for w in weight] for row in x])


def loop_matmul(weight: object, x: AnyArray) -> Outputs:
    return {"out": product(decoded(weight), x)}


def loop_head_matmul(weight: object, x: AnyArray) -> Outputs:
    rows = decoded(weight)
    return {
        "out": np.array([[[dot(o, row[h]) for o in w] for h, w in enumerate(rows)] for row in x])
    }


def gated(g: float, u: float, limit: float | None) -> float:
    if limit is not None:
        g = low(g, limit)
        u = u if math.isnan(u) else max(-limit, min(limit, u))
    return silu(g) * u


def loop_expert_ffn(
    experts: StoredExperts, x: AnyArray, ids: AnyArray, limit: float | None
) -> Outputs:
    g, u, d = (decoded(side) for side in (experts.gate, experts.up, experts.down))
    out = np.empty((*ids.shape, x.shape[1]))
    for t, row in enumerate(x):
        for r, e in enumerate(ids[t]):
            middle = [
                gated(dot(a, row), dot(b, row), limit) for a, b in zip(g[e], u[e], strict=True)
            ]
            out[t, r] = [dot(line, np.array(middle)) for line in d[e]]
    return {"out": out}


def loop_swiglu(gate: AnyArray, up: AnyArray, limit: float | None) -> Outputs:
    return shaped([gated(g, u, limit) for g, u in each(gate, up)], gate)


def loop_sigmoid(x: AnyArray) -> Outputs:
    return shaped([sigma(v) for (v,) in each(x)], x)


def loop_add(x: AnyArray, y: AnyArray) -> Outputs:
    return shaped([a + b for a, b in each(x, y)], x)


def loop_concat(x: AnyArray, y: AnyArray) -> Outputs:
    return {"out": np.array([list(a) + list(b) for a, b in zip(x, y, strict=True)], dtype=float)}


def loop_rms_norm(x: AnyArray, weight: AnyArray, epsilon: float) -> Outputs:
    def one(row: list[float]) -> list[float]:
        level = math.sqrt(math.fsum(v * v for v in row) / len(row) + epsilon)
        return [float(w) * v / level for w, v in zip(weight, row, strict=True)]

    return by_row(x, one)


def loop_layer_norm(x: AnyArray, weight: AnyArray, bias: AnyArray, epsilon: float) -> Outputs:
    def one(row: list[float]) -> list[float]:
        mean = math.fsum(row) / len(row)
        var = math.fsum((v - mean) ** 2 for v in row) / len(row)
        level = math.sqrt(var + epsilon)
        return [
            float(w) * (v - mean) / level + float(b)
            for v, (w, b) in zip(row, each(weight, bias), strict=True)
        ]

    return by_row(x, one)


def loop_gated_norm(x: AnyArray, weight: AnyArray, gate: AnyArray, epsilon: float) -> Outputs:
    normed = loop_rms_norm(x, weight, epsilon)["out"]
    return shaped([n * sigma(g) for n, g in each(normed, gate)], x)


def loop_spread(x: AnyArray, streams: int) -> Outputs:
    return {"out": np.array([[list(row)] * streams for row in x], dtype=float)}


def loop_stream_mean(streams: AnyArray) -> Outputs:
    return {"out": np.array([[math.fsum(c) / len(c) for c in x.T.tolist()] for x in streams])}


def sinkhorn_loop(logits: list[list[float]], rounds: int, epsilon: float) -> list[list[float]]:
    s = range(len(logits))
    c = [[math.exp(v) for v in row] for row in logits]
    c = [[v / math.fsum(row) + epsilon for v in row] for row in c]
    for step in range(2 * rounds - 1):
        if step % 2 == 0:
            sums = [math.fsum(c[i][j] for i in s) + epsilon for j in s]
            c = [[c[i][j] / sums[j] for j in s] for i in s]
        else:
            c = [[v / (math.fsum(row) + epsilon) for v in row] for row in c]
    return c


def loop_hyper_pre(
    streams: AnyArray, fn: object, base: AnyArray, scale: AnyArray, params: object
) -> Outputs:
    s, weight = params.streams, decoded(fn)
    out = {"input": [], "post": [], "comb": []}
    for x in streams.astype(float):
        z = [float(v) for v in x.reshape(-1)]
        level = math.sqrt(math.fsum(v * v for v in z) / len(z) + params.norm_epsilon)
        m = [dot(w, np.array(z) / level) for w in weight]
        kind = [0] * s + [1] * s + [2] * (s * s)
        m = [v * float(scale[k]) + float(b) for v, k, b in zip(m, kind, base, strict=True)]
        pre = [sigma(v) + params.epsilon for v in m[:s]]
        rows = [m[2 * s + i * s : 2 * s + (i + 1) * s] for i in range(s)]
        out["post"].append([2 * sigma(v) for v in m[s : 2 * s]])
        out["comb"].append(sinkhorn_loop(rows, params.rounds, params.epsilon))
        out["input"].append(
            [math.fsum(p * v for p, v in zip(pre, c, strict=True)) for c in x.T.tolist()]
        )
    return {name: np.array(value) for name, value in out.items()}


def loop_hyper_post(y: AnyArray, streams: AnyArray, post: AnyArray, comb: AnyArray) -> Outputs:
    out = np.empty(streams.shape)
    for t, j, c in np.ndindex(out.shape):
        mixed = dot(comb[t, :, j], streams[t, :, c])
        out[t, j, c] = float(post[t, j]) * float(y[t, c]) + mixed
    return {"out": out}


def loop_short_conv(raw: AnyArray, filters: AnyArray, window: AnyArray) -> Outputs:
    taps, past = filters.shape[1], len(window)
    seen = [*window.astype(float).tolist(), *raw.astype(float).tolist()]
    out = np.empty(raw.shape)
    for m, c in np.ndindex(raw.shape):
        out[m, c] = silu(
            math.fsum(
                float(filters[c, tau]) * seen[m + past - (taps - 1) + tau][c] for tau in range(taps)
            )
        )
    return {"out": out, "window": np.array(seen[-past:])}


def loop_kda_decay(raw: AnyArray, bias: AnyArray, rate: AnyArray, lower_bound: float) -> Outputs:
    width = raw.shape[1] // len(rate)
    out = np.empty((len(raw), len(rate), width))
    for t, h, c in np.ndindex(out.shape):
        at = h * width + c
        shifted = float(raw[t, at]) + float(bias[at])
        out[t, h, c] = lower_bound * sigma(float(rate[h]) * shifted)
    return {"out": out}


def unit(row: AnyArray) -> AnyArray:
    return row / math.sqrt(dot(row, row) + 1e-6)


def loop_kda_scan(
    query: AnyArray,
    key: AnyArray,
    value: AnyArray,
    decay: AnyArray,
    beta: AnyArray,
    state: AnyArray,
) -> Outputs:
    """The chunk form: the whole chunk by one triangular solve per head."""
    t, heads, width = query.shape
    query, key, value, decay, beta = (a.astype(float) for a in (query, key, value, decay, beta))
    out, after = np.empty(value.shape), np.empty(state.shape)
    for h in range(heads):
        m0, g = state[h].astype(float), np.cumsum(decay[:, h], axis=0)
        q = np.array([unit(r) for r in query[:, h]]) / math.sqrt(width)
        k = np.array([unit(r) for r in key[:, h]])
        lower, seen = np.zeros((t, t)), np.zeros((t, t))
        for i in range(t):
            for j in range(i + 1):
                fade = np.exp(g[i] - g[j])
                seen[i, j] = np.sum(q[i] * k[j] * fade)
                lower[i, j] = beta[i, h] * np.sum(k[i] * k[j] * fade) if j < i else 0
        start = beta[:, h, None] * (value[:, h] - (k * np.exp(g)) @ m0)
        u = np.linalg.solve(np.eye(t) + lower, start)
        out[:, h] = (q * np.exp(g)) @ m0 + seen @ u
        after[h] = np.exp(g[-1])[:, None] * m0 + (k * np.exp(g[-1] - g)).T @ u
    return {"out": out, "state": after}


def loop_store_rows(cache: AnyArray, rows: AnyArray, start: int) -> Outputs:
    out = cache.astype(float)
    for m, c in np.ndindex(rows.shape):
        value = float(rows[m, c])
        if cache.dtype == np.float16 and math.isfinite(value):
            try:
                value = struct.unpack("e", struct.pack("e", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
        out[start + m, c] = value
    return {"cache": out}


def loop_pool_keys(keys: AnyArray, gates: AnyArray, slot_bias: AnyArray) -> Outputs:
    pool, width = slot_bias.shape
    out = np.empty((len(keys) // pool, width))
    for p, c in np.ndindex(out.shape):
        rows = range(p * pool, (p + 1) * pool)
        share = [math.exp(float(gates[r, c]) + float(slot_bias[r % pool, c])) for r in rows]
        total = math.fsum(share)
        out[p, c] = math.fsum(
            a / total * float(keys[r, c]) for a, r in zip(share, rows, strict=True)
        )
    return {"out": out}


def loop_indexer_scores(
    query: AnyArray, head_weight: AnyArray, pools: AnyArray, first_position: int, pool: int
) -> Outputs:
    t, heads, width = query.shape
    visible, count = [], []
    for m in range(t):
        ready = (first_position + m + 1) // pool
        count.append(ready)
        for p in range(ready):
            cut = [
                max(0.0, dot(query[m, g], pools[p])) * float(head_weight[m, g])
                for g in range(heads)
            ]
            visible.append(math.fsum(cut) / math.sqrt(width * heads))
    return {"visible": np.array(visible), "count": np.array(count)}


def loop_select_cells(
    scores: AnyArray, first_position: int, pool: int, pools_kept: int, select_tail: bool
) -> Outputs:
    cells, count = [], []
    for m, row in enumerate(scores.tolist()):
        here = first_position + m
        ready = (here + 1) // pool
        best = sorted(range(ready), key=lambda p: (-row[p], p))[:pools_kept]
        tail = range(ready * pool, here + 1) if select_tail else ()
        chosen = sorted([p * pool + s for p in best for s in range(pool)] + list(tail))
        cells += chosen
        count.append(len(chosen))
    return {"cells": np.array(cells, dtype=np.int32), "count": np.array(count)}


def loop_dense_cells(count: int, first_position: int) -> Outputs:
    ends = [first_position + m + 1 for m in range(count)]
    return {"cells": np.array([c for end in ends for c in range(end)]), "count": np.array(ends)}


def loop_mla_attend(query: AnyArray, latents: AnyArray, cells: object, scale: float) -> Outputs:
    out = np.empty(query.shape)
    for t, h in np.ndindex(query.shape[:2]):
        rows = latents[cells.index[t, : cells.count[t]]].astype(float)
        scores = [scale * dot(query[t, h], row) for row in rows]
        weights = [math.exp(s - max(scores)) for s in scores]
        out[t, h] = [dot(np.array(weights), channel) / math.fsum(weights) for channel in rows.T]
    return {"out": out}


def loop_route(
    logits: AnyArray, bias: AnyArray, used: int, scale: float, forced: AnyArray | None = None
) -> Outputs:
    ids, weights = [], []
    for t, row in enumerate(logits.astype(float).tolist()):
        chance = [sigma(v) for v in row]
        order = sorted(range(len(row)), key=lambda e: (-(chance[e] + float(bias[e])), e))
        chosen = order[:used] if forced is None else [int(e) for e in forced[t]]
        total = math.fsum(chance[e] for e in chosen) + 1e-20
        ids.append(chosen)
        weights.append([scale * chance[e] / total for e in chosen])
    return {"ids": np.array(ids), "weights": np.array(weights)}


def loop_combine(rows: AnyArray, weights: AnyArray, shared: AnyArray) -> Outputs:
    out = np.empty(shared.shape)
    for t, c in np.ndindex(out.shape):
        out[t, c] = dot(weights[t], rows[t, :, c]) + float(shared[t, c])
    return {"out": out}


LOOPS = {name.removeprefix("loop_"): f for name, f in globals().items() if name.startswith("loop_")}


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in OPS])
def test_the_definition_equals_a_loop_over_its_formula(spec: OpSpec) -> None:
    small = [case for case in spec.cases() if case.elements <= MOST_ELEMENTS]
    assert len(small) >= 2
    for case in small:
        want = LOOPS[spec.name](**case.arguments)
        assert measure(spec.define(case.arguments), want).over(FLOAT64) <= 1, case.label
