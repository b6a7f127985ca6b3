"""One call or more of every op that is not a product, with results that are far from trivial."""

import numpy as np

from localglm.quant.types import StorageType
from tests.cpu.neon.runner import Call

TOKENS = 5


def op_calls():
    s = Source(np.random.default_rng(11))
    return [
        *elements(s),
        *[c for width in (1, 8, 33, 130, 1024) for c in norms(s, width)],
        *hyper(s, 4, 37),
        *linear_attention(s, 2, 128, 128),
        *linear_attention(s, 3, 21, 5),
        *indexer(s, 5, 45, half=0),
        *indexer(s, 3, 128, half=1),
        *attention(s, 3, 13, 20, half=0),
        *attention(s, 9, 80, 300, half=1),
        *routing(s, 33, 5, 37),
    ]


class Source:
    def __init__(self, generator):
        self.generator = generator

    def normal(self, *shape, scale=1.0):
        return (self.generator.standard_normal(shape) * scale).astype(np.float32)


def room(*shape):
    return np.full(shape, np.float32(7e7))


def elements(s):
    n = 999
    gate, up = s.normal(n, scale=30), s.normal(n, scale=30)
    gate[3], up[4], gate[5], up[6] = np.nan, np.nan, -np.inf, np.inf
    return [
        Call("lg_swiglu", (gate, up, room(n), n, 1, 10.0)),
        Call("lg_swiglu", (gate, up, room(n), n, 0, 0.0)),
        Call("lg_add", (gate, up, room(n), n)),
        Call("lg_sigmoid_all", (gate, room(n), n)),
        Call("lg_store_half", (s.normal(9, 111, scale=1e4), np.zeros((9, 111), np.uint16), 9, 111)),
        Call("lg_store_half", (s.normal(1, 64, scale=1e-6), np.zeros((1, 64), np.uint16), 1, 64)),
    ]


def norms(s, n):
    x, gate, w, b = s.normal(TOKENS, n) + 2, s.normal(TOKENS, n), s.normal(n), s.normal(n)
    y = room(TOKENS, n)
    return [
        Call("lg_rms_norm", (x, w, y, TOKENS, n, 1e-5)),
        Call("lg_layer_norm", (x, w, b, y, TOKENS, n, 1e-6)),
        Call("lg_gated_norm", (x, w, gate, y, TOKENS, n, 1e-5)),
    ]


def hyper(s, streams, d):
    mixes, n = streams * (2 + streams), streams * d
    x, y, fn = s.normal(TOKENS, streams, d), s.normal(TOKENS, d), s.normal(mixes, n)
    post, comb = s.normal(TOKENS, streams), s.normal(TOKENS, streams, streams)
    made = room(TOKENS, d), room(TOKENS, streams), room(TOKENS, streams, streams)
    pre = (0, StorageType.F32.value.ggml_id, fn, x, s.normal(mixes), s.normal(3), *made)
    return [
        Call("lg_hyper_pre", (*pre, TOKENS, streams, d, 20, 1e-6, 1e-5)),
        Call("lg_hyper_post", (y, x, post, comb, room(TOKENS, streams, d), TOKENS, streams, d)),
        Call("lg_stream_mean", (x, room(TOKENS, d), TOKENS, streams, d)),
    ]


def linear_attention(s, h, k, v):
    n, taps = h * k, 4
    raw, filters, window = s.normal(TOKENS, n), s.normal(n, taps), s.normal(taps - 1, n)
    rate, bias = np.abs(s.normal(h)), s.normal(n)
    key, value = s.normal(TOKENS, h, k), s.normal(TOKENS, h, v)
    decay, beta = -np.abs(s.normal(TOKENS, h, k)), s.normal(TOKENS, h)
    rows = (raw, key, value, decay, beta)
    return [
        Call("lg_short_conv", (raw, filters, window, room(TOKENS, n), TOKENS, n, taps)),
        Call("lg_kda_decay", (raw, bias, rate, room(TOKENS, n), TOKENS, h, k, -5.0)),
        Call("lg_kda_scan", (*rows, s.normal(h, k, v), room(TOKENS, h, v), TOKENS, h, k, v)),
    ]


def cache(s, rows, width, half):
    values = s.normal(rows, width)
    return values.astype(np.float16) if half else values


def indexer(s, g, i, *, half):
    pools, slots, first = 300, 4, 1196
    query, weight = s.normal(TOKENS, g, i), s.normal(TOKENS, g)
    keys, gates = s.normal(7 * slots, i), s.normal(7 * slots, i)
    scores = (query, weight, cache(s, pools, i, half), half, room(TOKENS, pools))
    return [
        Call("lg_pool_keys", (keys, gates, s.normal(slots, i), room(7, i), 7, slots, i)),
        Call("lg_indexer_scores", (*scores, TOKENS, g, i, pools, first, slots)),
    ]


def attention(s, h, width, cells, *, half):
    index = np.tile(np.arange(cells, dtype=np.int32), (TOKENS, 1))
    count = np.arange(cells - TOKENS, cells, dtype=np.int32)
    query, latents = s.normal(TOKENS, h, width), cache(s, cells, width, half)
    where = (index, count, room(TOKENS, h, width))
    sizes = (TOKENS, h, width, cells, cells, 0.2)
    return [Call("lg_mla_attend", (query, latents, half, *where, *sizes))]


def routing(s, experts, used, d):
    logits, bias = np.round(s.normal(TOKENS, experts) * 2) / 2, s.normal(experts, scale=0.1)
    ids, weights = np.zeros((TOKENS, used), np.int32), room(TOKENS, used)
    rows, shared = s.normal(TOKENS, used, d), s.normal(TOKENS, d)
    mixed = (rows, s.normal(TOKENS, used), shared, room(TOKENS, d))
    return [
        Call("lg_route", (logits, bias, None, ids, weights, TOKENS, experts, used, 2.5)),
        Call("lg_combine", (*mixed, TOKENS, used, d)),
    ]
