"""exp, sigmoid, silu and half precision: accuracy, edges, and the C header's bits."""

import ctypes
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from localglm.quant import elementary

CSRC = Path(__file__).parents[2] / "localglm" / "backends" / "cpu" / "csrc"
SOURCE = """
#include "lg_math.h"
#define EXPORT __attribute__((visibility("default")))
#define MAP(name, in, out, call) \\
    EXPORT void name(const in *x, out *y, long long n) { \\
        for (long long i = 0; i < n; i++) y[i] = call(x[i]); \\
    }
MAP(each_exp, float, float, lg_exp)
MAP(each_sigmoid, float, float, lg_sigmoid)
MAP(each_silu, float, float, lg_silu)
MAP(each_to_half, float, uint16_t, lg_to_half)
MAP(each_from_half, uint16_t, float, lg_half)
"""


def every_kind_of_float():
    """Return floats of every exponent and sign, the range of exp in detail, and the edges."""
    random = np.random.default_rng(1)
    anything = random.integers(0, 2**32, 60_000, dtype=np.uint32).view(np.float32)
    useful = (random.random(60_000) * 200 - 108).astype(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 88.72284, -104, 65519.99, 65520], np.float32)
    return np.concatenate([anything, useful, edges, -edges, np.nextafter(edges, np.float32(0))])


def units_off(value, exact):
    """Return the error in units in the last place of the float32 number nearest to exact."""
    return np.abs(value - exact) / np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)


def test_exp_is_within_1_3_units_where_the_result_is_normal():
    x = np.linspace(-87.3, 88.7, 400_001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert units_off(elementary.exp(x), exact).max() < 1.3
    # Control arm: one fused step of the reduction left out is far worse.
    short = np.exp(x.astype(np.float64) + np.rint(x * 1.44269504) * 1.42860677e-6)
    assert units_off(short.astype(np.float32), exact).max() > 100


def test_subnormal_results_of_exp_are_within_two_smallest_steps():
    x = np.linspace(-104, -87.4, 50_001).astype(np.float32)
    got = elementary.exp(x)
    assert np.abs(got - np.exp(x.astype(np.float64))).max() < 2 * 2.0**-149
    assert ((got > 0) & (got < 2.0**-126)).any()


def test_exp_at_its_ends_and_of_what_is_not_finite():
    x = np.array([np.inf, -np.inf, 88.72283, 88.7229, -104.00001, 0.0, -0.0], dtype=np.float32)
    got = elementary.exp(x)
    assert np.isfinite(got[2])
    assert got[[0, 1, 3, 4, 5, 6]].tolist() == [math.inf, 0, math.inf, 0, 1, 1]
    assert np.isnan(elementary.exp(np.array([np.nan], dtype=np.float32)))[0]


def test_sigmoid_and_silu_follow_their_formulas():
    x = np.linspace(-30, 30, 10_001).astype(np.float32)
    sigmoid = 1 / (1 + np.exp(-x.astype(np.float64)))
    assert units_off(elementary.sigmoid(x), sigmoid).max() < 3
    assert np.allclose(elementary.silu(x), x * sigmoid, rtol=4e-7, atol=0)
    ends = np.array([-np.inf, np.inf, -1e30, 1e30], dtype=np.float32)
    assert elementary.sigmoid(ends).tolist() == [0, 1, 0, 1]
    assert elementary.silu(ends[1:]).tolist() == [math.inf, 0, float(np.float32(1e30))]
    assert np.isnan(elementary.silu(ends[:1]))[0]


def test_to_half_rounds_to_even_and_keeps_every_half():
    halves = np.arange(65536, dtype=np.uint16)
    value = elementary.from_half(halves)
    kept = ~np.isnan(value)
    assert np.array_equal(elementary.to_half(value)[kept], halves[kept])
    ties = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519.996, 65520, 2.0**-25], dtype=np.float32)
    assert elementary.to_half(ties).tolist() == [0x3C00, 0x3C02, 0x7BFF, 0x7C00, 0]
    nans = np.array([0x7F800001, 0xFFC12345], dtype=np.uint32).view(np.float32)
    assert elementary.to_half(nans).tolist() == [0x7E00, 0xFE00]


@pytest.fixture(scope="module", params=["native", "baseline"])
def compiled(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    source, library = folder / "each.c", folder / "each.so"
    source.write_text(SOURCE)
    options = ["-O2", "-std=c11", "-ffp-contract=off", f"-mcpu={request.param}", "-shared"]
    position = [] if sys.platform == "win32" else ["-fPIC"]
    command = [sys.executable, "-m", "ziglang", "cc", *options, *position]
    subprocess.run([*command, f"-I{CSRC}", source, "-o", library], check=True, timeout=100)
    return ctypes.CDLL(str(library))


def run_compiled(compiled, name, x, dtype):
    out = np.empty(x.shape, dtype=dtype)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, out)]
    getattr(compiled, f"each_{name}")(*pointers, ctypes.c_longlong(x.size))
    return out


def same_but_for_nan_payloads(left, right):
    return np.array_equal(np.isnan(left), np.isnan(right)) and np.array_equal(
        left[~np.isnan(left)].view(np.uint32), right[~np.isnan(right)].view(np.uint32)
    )


def test_the_c_header_gives_the_same_bits(compiled):
    x = every_kind_of_float()
    for name in ("exp", "sigmoid", "silu"):
        got = run_compiled(compiled, name, x, np.float32)
        assert same_but_for_nan_payloads(got, getattr(elementary, name)(x)), name
    with np.errstate(all="ignore"):
        assert not same_but_for_nan_payloads(
            run_compiled(compiled, "exp", x, np.float32), np.exp(x)
        )
    assert np.array_equal(run_compiled(compiled, "to_half", x, np.uint16), elementary.to_half(x))
    halves = np.arange(65536, dtype=np.uint16)
    got = run_compiled(compiled, "from_half", halves, np.float32)
    assert same_but_for_nan_payloads(got, elementary.from_half(halves))
