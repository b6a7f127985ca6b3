"""The matrix product of the contract."""

import numpy as np
import pytest

from localglm.errors import ShapeError
from localglm.quant import activations, decode, exact, product
from localglm.quant.types import Family, StorageType
from localglm.quant.unpack import unpack
from tests.quant import rational, rows

EVERY = pytest.mark.parametrize("kind", StorageType, ids=lambda kind: kind.name)
BLOCKS = pytest.mark.parametrize("kind", rows.LAYOUTS, ids=lambda kind: kind.name)
MINIMA = (StorageType.Q2_K, StorageType.Q4_K, StorageType.Q5_K, StorageType.Q4_1, StorageType.Q5_1)


def activity(tokens, columns, seed=9):
    return np.random.default_rng(seed).standard_normal((tokens, columns)).astype(np.float32)


def same_bits(left, right):
    return np.array_equal(left.view(np.uint32), right.view(np.uint32))


def dequantised(kind, x):
    """Return the activations a product of this type sees, as float64."""
    if kind.family is Family.FLOAT:
        return x.astype(np.float64)
    run = activations.run_length(kind)
    got = activations.quantise(x, run)
    scale = np.repeat(got.scale.astype(np.float64), run, axis=1)
    return got.q * scale[:, : x.shape[1]]


def size_of_terms(kind, data, x):
    """Return the sum of the magnitudes of everything a product adds. Shapes: [t, rows]."""
    if kind.family is Family.FLOAT:
        return np.abs(x) @ np.abs(decode.decode_rows(kind, data)).T.astype(np.float64)
    blocks = unpack(kind, data)
    weight = np.abs(blocks.weight * blocks.factor[..., None].astype(np.float64))
    weight *= np.abs(blocks.scale)[..., None, None]
    if blocks.minima is not None:
        least = np.abs(blocks.minima.offset * blocks.minima.scale[..., None].astype(np.float64))
        weight += least[..., None]
    return np.abs(x) @ weight.reshape(len(data), -1).T


@EVERY
@pytest.mark.parametrize("blocks", [1, 2, 9, 19])
def test_one_row_and_token_is_the_contract_in_exact_arithmetic(kind, blocks):
    columns = blocks * max(kind.value.values, 8)
    data = rows.sane_rows(kind, 1, columns, blocks)
    x = activity(1, columns)
    got = product.matmul(kind, data, x)[0, 0]
    if kind.family is Family.FLOAT:
        expected = rational.dot32(decode.decode_rows(kind, data)[0], x[0])
    else:
        expected = rational.product(kind, unpack(kind, data), x[0])
    assert got.tobytes() == np.float32(expected).tobytes()


@BLOCKS
def test_more_than_eight_runs_of_eight_wrap_around_the_partials(kind):
    columns = 2304 + kind.value.values
    data = rows.sane_rows(kind, 1, columns, 70)
    x = activity(1, columns)
    expected = rational.product(kind, unpack(kind, data), x[0])
    assert product.matmul(kind, data, x)[0, 0].tobytes() == np.float32(expected).tobytes()


@EVERY
def test_the_error_is_that_of_eight_bit_activations_and_nothing_else(kind):
    data, x = rows.sane_rows(kind, 24, 2560, 8), activity(6, 2560)
    seen = dequantised(kind, x)
    expected = seen @ decode.decode_rows(kind, data).astype(np.float64).T
    room = 1e-6 * size_of_terms(kind, data, seen)
    got = product.matmul(kind, data, x)
    assert (np.abs(got - expected) <= room).all()
    # Control arm: the activations before rounding are not what was multiplied.
    if kind.family is not Family.FLOAT:
        unrounded = x.astype(np.float64) @ decode.decode_rows(kind, data).astype(np.float64).T
        assert not (np.abs(got - unrounded) <= room).all()


@pytest.mark.parametrize("kind", MINIMA, ids=lambda kind: kind.name)
def test_leaving_out_the_minima_is_seen(kind):
    data, x = rows.sane_rows(kind, 4, 512, 6), activity(3, 512)
    terms = product.block_terms(kind, data, x)
    add = product.add_super_blocks if kind.family is Family.SUPER else product.add_short_blocks
    bare = add(product.BlockTerms(terms.scale, terms.sums))
    assert same_bits(add(terms), product.matmul(kind, data, x))
    assert (add(terms) != bare).all()


def other_orders(kind, data, x):
    """Yield the same product with the sums in other orders."""
    if kind.family is Family.FLOAT:
        weight = decode.decode_rows(kind, data)
        terms = weight[None] * x[:, None, :]
        yield np.add.accumulate(terms, axis=-1)[..., -1]
        yield exact.dot32(weight[None, :, ::-1], x[:, None, ::-1])
        return
    terms = product.block_terms(kind, data, x)
    chain = np.zeros(terms.sums.shape[1:], dtype=np.float32)
    for b in range(len(terms.sums)):
        chain = exact.fma(terms.scale[b], terms.sums[b], chain)
        if terms.minimum is not None:
            sign = -1 if kind.family is Family.SUPER else 1
            chain = exact.fma(sign * terms.minimum[b], terms.offsets[b], chain)
    yield chain
    parts = (terms.scale, terms.sums, terms.minimum, terms.offsets)
    back = product.BlockTerms(*(p if p is None else p[::-1] for p in parts))
    add = product.add_super_blocks if kind.family is Family.SUPER else product.add_short_blocks
    yield add(back)


@EVERY
def test_any_other_order_of_the_sums_differs_in_some_bit(kind):
    data, x = rows.sane_rows(kind, 40, 2560, 8), activity(4, 2560)
    got = product.matmul(kind, data, x)
    for other in other_orders(kind, data, x):
        assert not same_bits(got, other)
        assert np.allclose(got, other, rtol=1e-3, atol=1e-2 * np.abs(got).max())


@EVERY
def test_the_cut_into_tokens_and_rows_changes_no_bit(kind, monkeypatch):
    data, x = rows.sane_rows(kind, 7, 512, 2), activity(9, 512)
    whole = product.matmul(kind, data, x)
    singly = np.concatenate([product.matmul(kind, data, x[t : t + 1]) for t in range(9)])
    assert same_bits(whole, singly)
    monkeypatch.setattr(product, "_VALUES_AT_ONCE", 1100)
    assert same_bits(product.matmul(kind, data, x), whole)


def largest_integers(kind):
    """Return (factor, weight, offset): magnitudes no block of the type can pass."""
    return {
        "Q4_0": (1, 8, 0),
        "Q4_1": (1, 15, 1),
        "Q5_0": (1, 16, 0),
        "Q5_1": (1, 31, 1),
        "Q8_0": (1, 128, 0),
        "IQ4_NL": (1, 127, 0),
        "Q2_K": (15, 3, 15),
        "Q3_K": (32, 4, 0),
        "Q4_K": (63, 15, 63),
        "Q5_K": (63, 31, 63),
        "Q6_K": (128, 32, 0),
        "IQ2_XXS": (31, 43, 0),
        "IQ2_XS": (31, 43, 0),
        "IQ2_S": (31, 43, 0),
        "IQ3_XXS": (31, 62, 0),
        "IQ3_S": (31, 15, 0),
        "IQ1_S": (15, 9, 0),
        "IQ1_M": (15, 9, 0),
        "IQ4_XS": (32, 127, 0),
    }[kind.name]


@BLOCKS
def test_no_block_can_overflow_int32(kind):
    factor, weight, offset = largest_integers(kind)
    blocks = unpack(kind, rows.random_rows(kind, 2000, kind.value.values * 4, 1))
    # The stated bounds hold and are reached, so that they are the true ones.
    assert np.abs(blocks.factor.astype(int)).max() == factor
    assert np.abs(blocks.weight.astype(int)).max() == weight
    if blocks.minima is not None:
        assert blocks.minima.offset.max() == offset
    assert factor * weight <= 4096
    assert max(factor * weight, offset) * 127 * kind.value.values < 2**31


@BLOCKS
def test_the_largest_integers_are_summed_exactly(kind):
    blocks = unpack(kind, rows.random_rows(kind, 300, kind.value.values, 4))
    whole = (blocks.factor[..., None].astype(int) * blocks.weight).reshape(300, -1)
    row = np.abs(whole).sum(axis=1).argmax()
    x = np.where(whole[row] < 0, -1.0, 1.0).astype(np.float32)[None]
    data = rows.random_rows(kind, 300, kind.value.values, 4)[row : row + 1]
    terms = product.block_terms(kind, data, x)
    assert terms.sums[0, 0, 0] == np.float32(127 * int(np.abs(whole[row]).sum()))


@BLOCKS
def test_zero_and_faint_activations_give_positive_zero(kind):
    data = rows.sane_rows(kind, 5, 512, 3)
    for value in (0.0, -0.0, 1e-42, 2.0**-101):
        x = np.full((2, 512), value, dtype=np.float32)
        assert not product.matmul(kind, data, x).view(np.uint32).any()


@EVERY
def test_a_value_that_is_not_finite_makes_its_token_nan_and_no_other(kind):
    data = rows.sane_rows(kind, 5, 512, 3)
    for bad in (np.nan, np.inf):
        x = activity(3, 512)
        clean = product.matmul(kind, data, x)
        x[1, 300] = bad
        got = product.matmul(kind, data, x)
        assert not np.isfinite(got[1]).any()
        assert same_bits(got[[0, 2]], clean[[0, 2]])


@BLOCKS
def test_a_scale_that_is_not_finite_spoils_its_row_and_no_other(kind):
    data, x = rows.sane_rows(kind, 4, 512, 3), activity(2, 512)
    clean = product.matmul(kind, data, x)
    for bits in (0x7C00, 0xFC00, 0x7E00):
        spoiled = data.copy()
        spoiled[2:3] = rows.with_scales(kind, data[2:3], bits, bits)
        got = product.matmul(kind, spoiled, x)
        assert not np.isfinite(got[:, 2]).any()
        assert same_bits(got[:, [0, 1, 3]], clean[:, [0, 1, 3]])


@EVERY
def test_activations_of_another_length_or_type_are_refused(kind):
    data = rows.sane_rows(kind, 2, 256, 1)
    for x in (activity(2, 255), activity(2, 512), activity(2, 256).astype(np.float64)):
        with pytest.raises(ShapeError, match="256 values"):
            product.matmul(kind, data, x)
