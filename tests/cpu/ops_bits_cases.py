"""Runs of every op that is not a product, at awkward shapes, as functions of a device.

``CHUNKED`` ops also take the number of tokens of each chunk; whatever the cut, the rows joined must
be the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from localglm.arrays import F32, AnyArray
from localglm.backends.base import Buffer, Cells, Device, HyperParams, StoredMatrix
from localglm.quant.types import StorageType

Run = Callable[[Device, Sequence[int]], list[AnyArray]]
TOKENS = 17
FIRST = 23
POOL = 4


@dataclass(frozen=True, slots=True)
class Source:
    """Random numbers, the same for every device."""

    generator: np.random.Generator

    def normal(self, *shape: int, scale: float = 1.0) -> F32:
        return (self.generator.standard_normal(shape) * scale).astype(np.float32)


def source(seed: int = 7) -> Source:
    return Source(np.random.default_rng(seed))


def joined(parts: list[list[AnyArray]]) -> list[AnyArray]:
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def by_rows(
    device: Device, inputs: list[F32], cut: Sequence[int], op: Callable[..., list[Buffer]]
) -> list[AnyArray]:
    """Feed rows of ``inputs`` chunk by chunk to ``op(first, *chunk)``; join what comes out."""
    parts, first = [], 0
    for count in cut:
        chunk = [device.upload(x[first : first + count]) for x in inputs]
        parts.append([device.download(b) for b in op(first, *chunk)])
        first += count
    return joined(parts)


def swiglu(width: int, limit: float | None) -> Run:
    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s = source()
        gate, up = s.normal(TOKENS, width, scale=9), s.normal(TOKENS, width, scale=9)
        gate[3, 0] = up[4, 0] = np.nan
        gate[5, 0], up[6, 0] = -np.inf, 300.0
        return by_rows(d, [gate, up], cut, lambda _, g, u: [d.swiglu(g, u, limit)])

    return run


def norms(width: int) -> Run:
    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s = source()
        x, gate = s.normal(TOKENS, width) + 2, s.normal(TOKENS, width)
        w, b = d.upload(s.normal(width)), d.upload(s.normal(width))
        return by_rows(
            d, [x, gate], cut, lambda _, a, g: [
                d.rms_norm(a, w, 1e-5), d.layer_norm(a, w, b, 1e-6), d.gated_norm(a, w, g, 1e-5),
                d.add(a, g), d.sigmoid(g), d.concat(a, g),
            ],
        )  # fmt: skip

    return run


def hyper(width: int, streams: int, type_: StorageType) -> Run:
    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s, mixes = source(), streams * (2 + streams)
        row = type_.row_bytes(streams * width)
        raw = s.generator.integers(0, 256, (mixes, row), dtype=np.uint8)
        if type_ is StorageType.F32:
            raw = s.normal(mixes, streams * width).view(np.uint8)
        else:  # a tame float16 scale at the head of every block
            raw.reshape(-1, type_.value.nbytes)[:, :2] = np.array([0.01], np.float16).view(np.uint8)
        data = np.ascontiguousarray(raw).reshape(-1)
        fn = d.matrix(StoredMatrix("fn", (mixes, streams * width), type_, data))
        base, scale = d.upload(s.normal(mixes)), d.upload(s.normal(3))
        params = HyperParams(streams, 20, 1e-6, 1e-5)

        def op(_: int, x: Buffer, y: Buffer) -> list[Buffer]:
            mix = d.hyper_pre(x, fn, base, scale, params)
            post = d.hyper_post(y, x, mix.post, mix.comb)
            wide = d.spread(y, streams)
            return [mix.input, mix.post, mix.comb, post, d.stream_mean(x), wide]

        inputs = [s.normal(TOKENS, streams, width), s.normal(TOKENS, width)]
        return by_rows(d, inputs, cut, op)

    return run


def kda(heads: int, key: int, value: int, taps: int) -> Run:
    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s, width = source(), heads * key
        window, state = d.upload(s.normal(taps - 1, width)), d.alloc((heads, key, value))
        d.copy(state, d.upload(s.normal(heads, key, value)))
        filters, bias = d.upload(s.normal(width, taps)), d.upload(s.normal(width))
        rate = d.upload(np.abs(s.normal(heads)))

        def op(_: int, raw: Buffer, k: Buffer, v: Buffer, b: Buffer) -> list[Buffer]:
            q = d.short_conv(raw, filters, window)
            g = d.kda_decay(raw, bias, rate, -5.0)
            out = d.kda_scan(d.reshape(q, k.shape), k, v, g, d.sigmoid(b), state)
            return [q, g, out]

        inputs = [
            s.normal(TOKENS, width), s.normal(TOKENS, heads, key),
            s.normal(TOKENS, heads, value), s.normal(TOKENS, heads),
        ]  # fmt: skip
        return [*by_rows(d, inputs, cut, op), d.download(window), d.download(state)]

    return run


def indexer(heads: int, width: int, dtype: str, *, select_tail: bool) -> Run:
    """Scores of tokens, the choice of cells, per token padded to one width."""

    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s, total = source(), FIRST + TOKENS
        pools = total // POOL
        keys, gates = (
            d.upload(s.normal(pools * POOL, width)),
            d.upload(s.normal(pools * POOL, width)),
        )
        made = d.pool_keys(keys, gates, d.upload(s.normal(POOL, width)))
        cache = d.alloc((pools, width), dtype)
        d.store_rows(cache, made, 0)

        def op(first: int, q: Buffer, w: Buffer) -> list[Buffer]:
            scores = d.indexer_scores(q, w, cache, FIRST + first, POOL)
            cells = d.select_cells(scores, FIRST + first, POOL, 3, select_tail)
            full = np.full((q.shape[0], pools), -np.inf, np.float32)
            full[:, : scores.shape[1]] = d.download(scores)
            index = np.zeros((q.shape[0], total), np.int32)
            index[:, : cells.index.shape[1]] = d.download(cells.index)
            return [d.upload(full), d.upload(index), cells.count]

        inputs = [s.normal(TOKENS, heads, width), s.normal(TOKENS, heads)]
        return [d.download(made), *by_rows(d, inputs, cut, op)]

    return run


def attention(heads: int, width: int, dtype: str, first: int) -> Run:
    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s = source()
        rows = first + TOKENS
        cache = d.alloc((rows, width), dtype)
        d.store_rows(cache, d.upload(s.normal(rows, width)), 0)
        sparse = np.sort(
            s.generator.permuted(np.tile(np.arange(first), (TOKENS, 1)), axis=1)[:, :9]
        )
        wanted = d.upload(sparse.astype(np.int32))

        def op(at: int, q: Buffer) -> list[Buffer]:
            count = q.shape[0]
            dense = d.dense_cells(count, first + at)
            few = Cells(d.rows(wanted, at, at + count), d.upload(np.full(count, 9)))
            return [d.mla_attend(q, cache, dense, 0.2), d.mla_attend(q, cache, few, 0.2)]

        return by_rows(d, [s.normal(TOKENS, heads, width)], cut, op)

    return run


def routing(experts: int, used: int, width: int) -> Run:
    def run(d: Device, cut: Sequence[int]) -> list[AnyArray]:
        s = source()
        bias = d.upload(s.normal(experts, scale=0.1))
        logits = np.round(s.normal(TOKENS, experts) * 2) / 2  # ties

        def op(_: int, x: Buffer, rows: Buffer, shared: Buffer) -> list[Buffer]:
            made = d.route(x, bias, used, 2.5)
            return [made.ids, made.weights, d.combine(rows, made.weights, shared)]

        inputs = [logits, s.normal(TOKENS, used, width), s.normal(TOKENS, width)]
        return by_rows(d, inputs, cut, op)

    return run


CASES: dict[str, Run] = {
    **{f"swiglu {n}": swiglu(n, 10.0) for n in (1, 7, 33)},
    "swiglu without a limit": swiglu(40, None),
    **{f"norms {n}": norms(n) for n in (1, 8, 31, 33, 130, 1024)},
    "hyper 37": hyper(37, 4, StorageType.F32),
    "hyper 24 of 2 streams": hyper(24, 2, StorageType.F32),
    "hyper 64 Q8_0": hyper(64, 4, StorageType.Q8_0),
    "kda 3x21x5": kda(3, 21, 5, 4),
    "kda 2x128x128": kda(2, 128, 128, 4),
    "kda 5x8x73": kda(5, 8, 73, 2),
    "indexer f32": indexer(5, 45, "f32", select_tail=True),
    "indexer f16": indexer(3, 128, "f16", select_tail=True),
    "indexer without tail": indexer(1, 7, "f16", select_tail=False),
    "attention f32": attention(3, 13, "f32", 20),
    "attention f16": attention(9, 80, "f16", 300),
    "attention of whole pieces": attention(8, 64, "f32", 256 - 9),
    "routing": routing(33, 5, 37),
    "routing to all": routing(4, 4, 8),
}
