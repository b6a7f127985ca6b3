"""Fused multiply-add and ordered sums against exact rational arithmetic."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.quant import exact
from tests.quant import rational

WORDS = st.integers(0, 2**32 - 1)


def float32(word):
    return np.array(word, dtype=np.uint32).view(np.float32)[()]


def bits(value):
    return int(np.asarray(value, dtype=np.float32).view(np.uint32))


def hard_operands(count, seed):
    """Sums just beside a tie of two float32 numbers: a * b is 2^-24 but for a tail near 2^-70."""
    random = np.random.default_rng(seed)
    step = np.float32(2.0**-23)
    i = random.integers(1, 1000, count).astype(np.float32)
    j = i + random.integers(-1, 2, count).astype(np.float32)
    sign = random.choice(np.array([-1, 1], dtype=np.float32), (2, count))
    a = np.float32(2.0**-12) * (1 + i * step) * sign[0]
    b = np.float32(2.0**-12) * (1 - j * step)
    return a, b, sign[1] * (1 + random.integers(0, 9, count).astype(np.float32) * step)


@settings(max_examples=300, deadline=None)
@given(WORDS, WORDS, WORDS)
def test_fma_rounds_once_for_any_bits(a, b, c):
    a, b, c = float32(a), float32(b), float32(c)
    got = exact.fma(a, b, c)
    if np.isfinite([a, b, c]).all():
        assert bits(got) == bits(rational.fma(a, b, c))
    else:
        with np.errstate(all="ignore"):
            plain = np.float64(a) * np.float64(b) + np.float64(c)
        assert np.isnan(got) if np.isnan(plain) else got == np.float32(plain)


def test_fma_rounds_once_where_the_sum_is_near_a_tie():
    a, b, c = hard_operands(3000, 1)
    expected = np.array([rational.fma(*each) for each in zip(a, b, c, strict=True)])
    assert np.array_equal(exact.fma(a, b, c).view(np.uint32), expected.view(np.uint32))


def test_rounding_twice_fails_near_a_tie():
    a, b, c = hard_operands(3000, 1)
    fused = exact.fma(a, b, c)
    through_float64 = (a.astype(np.float64) * b.astype(np.float64) + c).astype(np.float32)
    assert (fused != through_float64).sum() > 100
    assert (fused != a * b + c).sum() > 100


def test_fma_broadcasts_and_keeps_shapes():
    grid = exact.fma(np.ones((3, 1), np.float32), np.ones(4, np.float32), np.float32(2))
    assert grid.shape == (3, 4)
    assert grid.dtype == np.float32
    assert exact.fma(np.float32(2), np.float32(3), np.float32(4)).shape == ()


def test_dot_and_sum_keep_the_order_of_the_contract_at_every_length():
    random = np.random.default_rng(2)
    for n in (0, 1, 31, 32, 33, 63, 64, 100):
        w, x = random.standard_normal((2, n)).astype(np.float32)
        ones = np.ones(n, dtype=np.float32)
        assert bits(exact.dot32(w, x)) == bits(rational.dot32(w, x))
        assert bits(exact.sum32(x)) == bits(rational.dot32(ones, x))


def test_other_orders_of_the_same_sum_differ_in_some_bit():
    x = np.random.default_rng(3).standard_normal((50, 1000)).astype(np.float32)
    ordered = exact.sum32(x)
    sequential = np.add.accumulate(x, axis=-1)[:, -1]
    other_tree = exact.sum32(x[:, ::-1])
    assert (ordered != sequential).any()
    assert (ordered != other_tree).any()
    assert np.allclose(ordered, x.sum(axis=-1, dtype=np.float64), rtol=0, atol=1e-4)
