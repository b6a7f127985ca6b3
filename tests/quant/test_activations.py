"""Eight-bit activations: section 1 of the contract."""

import numpy as np
import pytest

from localglm.errors import ShapeError
from localglm.quant import activations
from localglm.quant.types import Family, StorageType
from tests.quant import rational

SMALLEST = np.float32(2.0**-100)


def one_row(values, run=32):
    return activations.quantise(np.array([values], dtype=np.float32), run)


@pytest.mark.parametrize("run", [32, 256])
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 256, 300])
def test_codes_and_scales_are_those_of_exact_arithmetic(run, columns):
    random = np.random.default_rng(columns)
    x = np.ldexp(random.standard_normal(columns), random.integers(-120, 120)).astype(np.float32)
    got = activations.quantise(x[None], run)
    q, scale = rational.quantise(x, run)
    assert got.q[0].tolist() == q
    assert np.array_equal(got.scale[0].view(np.uint32), np.array(scale).view(np.uint32))


def test_ties_go_to_even_and_not_away_from_zero():
    x = np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 125.5], dtype=np.float32)
    got = one_row(x)
    assert got.q[0].tolist() == [127, 0, 2, 2, 0, -2, -2, 126]
    away = np.trunc(x + np.copysign(np.float32(0.5), x))
    assert got.q[0].tolist() != away.tolist()


def test_a_run_below_the_threshold_is_zero_and_one_at_it_is_not():
    below = np.nextafter(SMALLEST, np.float32(0))
    for value, used in ((below, False), (SMALLEST, True), (-SMALLEST, True), (-below, False)):
        got = one_row([0.0, value])
        assert got.q[0].tolist() == [0, int(np.copysign(127, value)) if used else 0]
        assert (got.scale[0, 0] > 0) == used


def test_a_run_that_is_not_finite_has_a_nan_scale_and_leaves_its_neighbours_alone():
    for bad in (np.inf, -np.inf, np.nan):
        x = np.ones(96, dtype=np.float32)
        x[40] = bad
        got = one_row(x)
        assert np.isnan(got.scale[0]).tolist() == [False, True, False]
        assert not got.q[0, 32:64].any()
        assert (got.q[0, :32] == 127).all()
        assert (got.q[0, 64:] == 127).all()


def test_signalling_nan_bits_count_as_not_finite():
    x = np.zeros(32, dtype=np.uint32)
    x[3] = 0xFF800001
    assert np.isnan(activations.quantise(x.view(np.float32)[None], 32).scale[0, 0])


def test_no_code_passes_127_at_any_magnitude():
    random = np.random.default_rng(4)
    words = random.integers(0x0D800000, 0x7F800000, (400, 32), dtype=np.uint32)
    words |= random.choice(np.array([0, 0x80000000], dtype=np.uint32), words.shape)
    got = activations.quantise(words.view(np.float32), 32)
    assert np.abs(got.q.astype(np.int32)).max(axis=1).tolist() == [127] * 400
    assert np.isfinite(got.scale).all()


def test_the_longer_run_gives_other_codes_than_the_shorter():
    x = np.random.default_rng(5).standard_normal((1, 256)).astype(np.float32)
    assert (activations.quantise(x, 32).q != activations.quantise(x, 256).q).any()


def test_run_lengths_belong_to_families_and_float_types_have_none():
    for kind in StorageType:
        if kind.family is Family.FLOAT:
            with pytest.raises(ShapeError, match=kind.name):
                activations.run_length(kind)
        else:
            assert activations.run_length(kind) == (32 if kind.value.values == 32 else 256)


def test_wrong_shapes_and_types_are_refused():
    for x, run in ((np.zeros(4, np.float32), 32), (np.zeros((1, 4)), 32)):
        with pytest.raises(ShapeError, match="activations"):
            activations.quantise(x, run)
    with pytest.raises(ShapeError, match="runs of 0"):
        activations.quantise(np.zeros((1, 4), np.float32), 0)
