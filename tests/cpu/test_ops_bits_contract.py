"""Each op gives the bits that sections 4 to 8 of docs/design/arithmetic.md spell out.

The steps are restated here in numpy float32; nothing is shared with the C kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from localglm.arrays import F32, AnyArray
from localglm.backends.base import Cells, HyperParams, StoredMatrix
from localglm.backends.cpu.device import CpuDevice
from localglm.quant.elementary import exp, sigmoid, silu
from localglm.quant.exact import dot32, fma, sum32
from localglm.quant.types import StorageType
from tests.cpu.ops_bits_cases import source

ONE = np.float32(1)


@pytest.fixture(scope="module", params=[None, "portable"])
def device(request: pytest.FixtureRequest) -> Iterator[CpuDevice]:
    made = CpuDevice(threads=2, isa=request.param)
    yield made
    made.close()


def same(got: object, want: AnyArray) -> bool:
    assert isinstance(got, np.ndarray)
    assert want.dtype == got.dtype
    return bool(np.array_equal(got.view(np.int32), np.ascontiguousarray(want).view(np.int32)))


def inverse(x: F32, epsilon: float) -> F32:
    mean = dot32(x, x) / np.float32(x.shape[-1])
    return (ONE / np.sqrt(mean + np.float32(epsilon)))[..., None]


def unit(x: F32) -> F32:
    return x * (ONE / np.sqrt(dot32(x, x) + np.float32(1e-6)))[..., None]


def ascending(products: list[tuple[AnyArray, AnyArray]]) -> F32:
    total = np.zeros(np.broadcast_shapes(products[0][0].shape, products[0][1].shape), np.float32)
    for a, b in products:
        total = fma(a, b, total)
    return total


@pytest.mark.parametrize("n", [1, 31, 33, 130])
def test_norms_sum_in_32_partials(device: CpuDevice, n: int) -> None:
    s = source()
    x, w, b, gate = s.normal(5, n), s.normal(n), s.normal(n), s.normal(5, n)
    normed = (x * inverse(x, 1e-5)) * w
    assert same(device.rms_norm(x, w, 1e-5), normed)
    assert same(device.gated_norm(x, w, gate, 1e-5), normed * sigmoid(gate))
    centred = x - (sum32(x) / np.float32(n))[:, None]
    assert same(device.layer_norm(x, w, b, 1e-6), fma(centred * inverse(centred, 1e-6), w, b))


def test_another_order_of_a_norm_is_seen(device: CpuDevice) -> None:
    s = source()
    x, w = s.normal(64, 130), s.normal(130)
    plain = np.zeros((64, 1), np.float32)
    for i in range(130):
        plain = fma(x[:, i : i + 1], x[:, i : i + 1], plain)
    wrong = (x * (ONE / np.sqrt(plain / np.float32(130) + np.float32(1e-5)))) * w
    assert not same(device.rms_norm(x, w, 1e-5), wrong)


def test_swiglu_cuts_the_gate_from_above_only(device: CpuDevice) -> None:
    s = source()
    gate, up = s.normal(3, 37, scale=20), s.normal(3, 37, scale=20)
    limit = np.float32(10)
    want = silu(np.minimum(gate, limit)) * np.clip(up, -limit, limit)
    assert same(device.swiglu(gate, up, 10.0), want)
    both = silu(np.clip(gate, -limit, limit)) * np.clip(up, -limit, limit)
    assert not same(device.swiglu(gate, up, 10.0), both)


def sinkhorn(c: F32, rounds: int, epsilon: np.float32) -> F32:
    c = exp(c - c.max(axis=-1, keepdims=True))
    c = c / np.add.accumulate(c, axis=2)[:, :, -1:] + epsilon
    for step in range(2 * rounds - 1):
        axis = 1 if step % 2 == 0 else 2
        total = np.take(np.add.accumulate(c, axis=axis), [-1], axis=axis)
        c = c / (total + epsilon)
    return c


def test_hyper_connections_follow_their_steps(device: CpuDevice) -> None:
    s, t, n, d = source(), 6, 4, 37
    x, y = s.normal(t, n, d), s.normal(t, d)
    fn, base, scale = s.normal(24, n * d), s.normal(24), s.normal(3)
    stored = StoredMatrix("fn", fn.shape, StorageType.F32, fn.view(np.uint8).reshape(-1))
    params = HyperParams(n, 20, 1e-6, 1e-5)
    got = device.hyper_pre(x, device.matrix(stored), base, scale, params)
    flat, eps = x.reshape(t, n * d), np.float32(1e-6)
    mix = dot32(fn[None], (flat * inverse(flat, 1e-5))[:, None])
    pre = sigmoid(fma(mix[:, :4], scale[0], base[:4])) + eps
    post = np.float32(2) * sigmoid(fma(mix[:, 4:8], scale[1], base[4:8]))
    logits = fma(mix[:, 8:], scale[2], base[8:]).reshape(t, n, n)
    comb = sinkhorn(logits, 20, eps)
    assert same(got.post, post)
    assert same(got.comb, comb)
    assert not same(got.comb, sinkhorn(logits, 19, eps))
    assert same(got.input, ascending([(pre[:, i, None], x[:, i]) for i in range(n)]))
    out = post[:, :, None] * y[:, None]
    for i in range(n):
        out = fma(comb[:, i, :, None], x[:, i, None], out)
    assert same(device.hyper_post(y, x, post, comb), out)
    assert same(device.stream_mean(x), np.add.accumulate(x, axis=1)[:, -1] / np.float32(n))


def test_linear_attention_follows_its_steps(device: CpuDevice) -> None:
    s, t, h, k, v = source(), 5, 2, 21, 9
    q, key, value = s.normal(t, h, k), s.normal(t, h, k), s.normal(t, h, v)
    decay, beta, memory = -np.abs(s.normal(t, h, k)), sigmoid(s.normal(t, h)), s.normal(h, k, v)
    state = memory.copy()
    got = device.kda_scan(q, key, value, decay, beta, state)
    query, key = unit(q) * (ONE / np.sqrt(np.float32(k))), unit(key)
    out = np.empty((t, h, v), np.float32)
    for m in range(t):
        memory = memory * exp(decay[m])[:, :, None]
        recalled = ascending([(key[m, :, c, None], memory[:, c]) for c in range(k)])
        delta = beta[m, :, None] * (value[m] - recalled)
        memory = fma(key[m, :, :, None], delta[:, None], memory)
        out[m] = ascending([(query[m, :, c, None], memory[:, c]) for c in range(k)])
    assert same(got, out)
    assert same(state, memory)


def test_convolution_and_decay_follow_their_steps(device: CpuDevice) -> None:
    s, t, c, taps = source(), 6, 21, 4
    raw, filters, window = s.normal(t, c), s.normal(c, taps), s.normal(taps - 1, c)
    past = np.concatenate([window, raw])
    want = silu(ascending([(filters[:, i], past[i : i + t]) for i in range(taps)]))
    assert same(device.short_conv(raw, filters, window), want)
    assert same(window, past[t:])
    bias, rate = s.normal(c), np.abs(s.normal(3))
    shifted = rate[:, None] * (raw + bias).reshape(t, 3, 7)
    assert same(device.kda_decay(raw, bias, rate, -5.0), np.float32(-5) * sigmoid(shifted))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_indexer_follows_its_steps(device: CpuDevice, dtype: str) -> None:
    s, t, g, i = source(), 9, 3, 45
    keys, gates, bias = s.normal(20, i), s.normal(20, i), s.normal(4, i)
    x = gates.reshape(5, 4, i) + bias
    e = exp(x - x.max(axis=1, keepdims=True))
    total = np.add.accumulate(e, axis=1)[:, -1]
    blocks = keys.reshape(5, 4, i)
    want = ascending([(e[:, slot], blocks[:, slot]) for slot in range(4)]) / total
    made = device.pool_keys(keys, gates, bias)
    assert same(made, want)
    cache = device.alloc((5, i), dtype)
    device.store_rows(cache, made, 0)
    kept = device.download(cache).astype(np.float32)
    q, w = s.normal(t, g, i), s.normal(t, g)
    dots = dot32(q[:, :, None], kept[None, None])
    dots = np.where(dots < 0, np.float32(0), dots)
    scores = ascending([(w[:, n, None], dots[:, n]) for n in range(g)])
    scores = scores * (ONE / np.sqrt(np.float32(i * g)))
    complete = (11 + np.arange(t) + 1) // 4
    want = np.where(np.arange(5) < complete[:, None], scores, np.float32(-np.inf))
    assert same(device.indexer_scores(q, w, cache, 11, 4), want)


def attend(q: F32, rows: F32, scale: np.float32, piece: int) -> F32:
    """One query [h, l] over all rows, in pieces."""
    total = largest = acc = np.zeros(0, np.float32)
    for first in range(0, len(rows), piece):
        part = rows[first : first + piece]
        score = dot32(q[:, None], part[None]) * scale
        m = score.max(axis=-1)
        e = exp(score - m[:, None])
        sums, weighed = sum32(e), ascending([(e[:, r, None], part[r]) for r in range(len(part))])
        if first == 0:
            largest, total, acc = m, sums, weighed
            continue
        new = np.maximum(largest, m)
        f, g = exp(largest - new), exp(m - new)
        total = fma(g, sums, f * total)
        acc = fma(g[:, None], weighed, f[:, None] * acc)
        largest = new
    return acc / total[:, None]


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_attention_merges_pieces_of_128_ranks(device: CpuDevice, dtype: str) -> None:
    s, h, width, n = source(), 3, 69, 300
    cache = device.alloc((400, width), dtype)
    device.store_rows(cache, s.normal(400, width), 0)
    chosen = np.sort(s.generator.permutation(400)[:n]).astype(np.int32)[None]
    q, scale = s.normal(1, h, width), np.float32(0.3)
    got = device.mla_attend(q, cache, Cells(chosen, np.array([n], np.int32)), 0.3)
    rows = device.download(cache)[chosen[0]].astype(np.float32)
    assert same(got, attend(q[0], rows, scale, 128)[None])
    assert not same(got, attend(q[0], rows, scale, 64)[None])


def test_routing_follows_its_steps(device: CpuDevice) -> None:
    s, t, e, x, d = source(), 8, 33, 5, 37
    logits, bias = s.normal(t, e), s.normal(e)
    got = device.route(logits, bias, x, 2.5)
    chance = sigmoid(logits)
    ids = np.argsort(-(chance + bias), axis=1, kind="stable")[:, :x]
    picked = np.take_along_axis(chance, ids, axis=1)
    total = np.add.accumulate(picked, axis=1)[:, -1:]
    weights = (np.float32(2.5) * picked) / (total + np.float32(1e-20))
    assert same(got.ids, ids.astype(np.int32))
    assert same(got.weights, weights)
    rows, shared = s.normal(t, x, d), s.normal(t, d)
    want = ascending([(weights[:, r, None], rows[:, r]) for r in range(x)]) + shared
    assert same(device.combine(rows, weights, shared), want)
    backwards = ascending([(weights[:, r, None], rows[:, r]) for r in reversed(range(x))])
    assert not same(device.combine(rows, weights, shared), backwards + shared)
