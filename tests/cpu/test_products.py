"""Matrix products of the native library: the contract, bit for bit."""

from pathlib import Path

import numpy as np
import pytest

from localglm.quant import activations, product
from localglm.quant.types import Family, StorageType
from tests.cpu.products_library import (
    BY_NAME,
    ISAS,
    bits,
    open_library,
    products,
    random_weights,
    same,
    supported,
    tame_weights,
)

VECTORS = Path(__file__).parents[1] / "conformance"
LIBRARY = open_library()
RUNS_HERE = supported(LIBRARY)
TOKENS = (1, 2, 3, 5, 17)
THREADS = (1, 2, 5)
# Row lengths around a tile of 32 and around groups of eight blocks and of two, row counts around a
# chunk.
LENGTHS = {
    Family.FLOAT: (1, 31, 33, 200),
    Family.RUN32: (32, 224, 256, 2080),
    Family.SUPER: (256, 2048, 2304, 2816),
}
ROWS = (1, 7, 33)
EVERY_TYPE = pytest.mark.parametrize("kind", StorageType, ids=lambda kind: kind.name)
EVERY_ISA = pytest.mark.parametrize("isa", RUNS_HERE)


def activation_rows(tokens, cols, seed=5):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((tokens, cols)) * rng.choice([1e-3, 1, 40], cols)).astype(
        np.float32
    )


def contract(kind, weights, x):
    with np.errstate(all="ignore"):
        return product.matmul(kind, weights, x)


def vectors(kind):
    with np.load(VECTORS / f"{kind.name.lower()}.npz") as stored:
        return dict(stored)


def conformance_activations():
    with np.load(VECTORS / "activations.npz") as stored:
        return dict(stored)


def lengths_of(stored):
    return [int(name.removeprefix("y_")) for name in stored if name.startswith("y_")]


def test_the_portable_kernels_are_in_every_library() -> None:
    assert "portable" in RUNS_HERE
    assert LIBRARY.lg_isa_best() == max(ISAS[name] for name in RUNS_HERE)


@EVERY_ISA
@EVERY_TYPE
def test_products_follow_the_contract_for_any_shape(kind, isa) -> None:
    for number, cols in enumerate(LENGTHS[kind.family]):
        rows = ROWS[number % len(ROWS)]
        weights = random_weights(kind, (rows,), cols)
        x = activation_rows(max(TOKENS), cols)
        wanted = contract(kind, weights, x)
        for threads in THREADS:
            with products(LIBRARY, isa, threads) as use:
                for tokens in TOKENS:
                    code, y = use.matmul(kind, weights, x[:tokens])
                    assert code == 0
                    assert same(y, wanted[:tokens]), (cols, threads, tokens)


@EVERY_ISA
@EVERY_TYPE
def test_many_tokens_and_rows_give_what_each_gives_alone(kind, isa) -> None:
    # Several panels of rows, a panel that is not full, and more tokens than meet a block at once.
    cols, tokens = 768, 135
    weights = tame_weights(kind, (87,), cols)
    x = activation_rows(tokens, cols)
    with products(LIBRARY, isa, 2) as use:
        together = use.matmul(kind, weights, x)[1]
        alone = np.concatenate([use.matmul(kind, weights, x[t : t + 1])[1] for t in range(tokens)])
    assert same(together, alone)
    assert not same(together, np.roll(alone, 1, axis=1))


@EVERY_ISA
@EVERY_TYPE
def test_the_largest_sums_stay_exact(kind, isa) -> None:
    cols = 512
    x = np.where(np.random.default_rng(2).random((9, cols)) < 0.5, -1, 1).astype(np.float32)
    x[0], x[1] = 1, -1
    for byte in (0x3F, 0x3B, 0x0F):
        weights = np.full((17, kind.row_bytes(cols)), byte, np.uint8)
        wanted = contract(kind, weights, x)
        with products(LIBRARY, isa, 1) as use:
            assert same(use.matmul(kind, weights, x)[1], wanted), byte


@EVERY_ISA
@EVERY_TYPE
def test_products_repeat_the_conformance_vectors(kind, isa) -> None:
    stored, x = vectors(kind), conformance_activations()["x"].view(np.float32)
    with products(LIBRARY, isa, 2) as use:
        for cols in lengths_of(stored):
            code, y = use.matmul(kind, stored[f"w_{cols}"], np.ascontiguousarray(x[:, :cols]))
            assert code == 0
            assert (bits(y) == stored[f"y_{cols}"]).all(), cols


@EVERY_ISA
@EVERY_TYPE
def test_exact_products_repeat_the_conformance_vectors(kind, isa) -> None:
    stored, x = vectors(kind), conformance_activations()["x"].view(np.float32)
    name = "y" if kind.family is Family.FLOAT else "float_y"
    with products(LIBRARY, isa, 2) as use:
        for cols in lengths_of(stored):
            rows = np.ascontiguousarray(x[:, :cols])
            code, y = use.matmul(kind, stored[f"w_{cols}"], rows, exact=True)
            assert code == 0
            assert (bits(y) == stored[f"{name}_{cols}"]).all(), cols


@EVERY_ISA
@pytest.mark.parametrize("run", [32, 256])
@pytest.mark.parametrize("cols", [96, 300, 2560])
def test_quantisation_repeats_the_conformance_vectors(run, cols, isa) -> None:
    stored = conformance_activations()
    x = np.ascontiguousarray(stored["x"].view(np.float32)[:, :cols])
    with products(LIBRARY, isa, 1) as use:
        code, q, d = use.quantise(run, x)
    assert code == 0
    assert (q == stored[f"q_{run}_{cols}"]).all()
    assert (bits(d) == stored[f"scale_{run}_{cols}"]).all()


@EVERY_ISA
@EVERY_TYPE
def test_a_flipped_bit_in_the_blocks_of_a_row_changes_that_row_alone(kind, isa) -> None:
    cols = LENGTHS[kind.family][-1]
    weights = tame_weights(kind, (5,), cols)
    x = activation_rows(6, cols)
    changed = weights.copy()
    changed[3, kind.value.nbytes // 2 :: kind.value.nbytes] ^= 1
    with products(LIBRARY, isa, 2) as use:
        before, after = use.matmul(kind, weights, x)[1], use.matmul(kind, changed, x)[1]
    differs = bits(before) != bits(after)
    assert differs[:, 3].any()
    assert not np.delete(differs, 3, axis=1).any()


def blocks_in_order(kind, weights, x):
    """A plausible wrong order: one running sum over the blocks of a row."""
    terms = product.block_terms(kind, weights, x)
    total = np.zeros(terms.scale.shape[1:], np.float32)
    for scale, sums in zip(terms.scale, terms.sums, strict=True):
        total = total + scale * sums
    return total


@pytest.mark.parametrize("kind", [BY_NAME["Q8_0"], BY_NAME["Q6_K"], BY_NAME["IQ2_XXS"]])
def test_one_running_sum_over_the_blocks_would_not_pass(kind) -> None:
    cols = LENGTHS[kind.family][-1]
    weights, x = tame_weights(kind, (33,), cols), activation_rows(17, cols)
    with products(LIBRARY, RUNS_HERE[-1], 1) as use:
        right = use.matmul(kind, weights, x)[1]
    wrong = blocks_in_order(kind, weights, x)
    assert np.isfinite(right).all()
    assert (bits(right) != bits(wrong)).mean() > 0.1
    assert np.abs(right - wrong).max() <= 1e-5 * np.abs(right).max()


def test_halves_of_runs_in_another_order_would_not_pass() -> None:
    kind = BY_NAME["Q8_0"]
    weights, x = tame_weights(kind, (33,), 2048), activation_rows(17, 2048)
    swapped = np.ascontiguousarray(
        weights.reshape(33, 8, 2, 4 * 34)[:, :, ::-1].reshape(weights.shape)
    )
    x_swapped = np.ascontiguousarray(x.reshape(17, 8, 2, 128)[:, :, ::-1].reshape(x.shape))
    moved = np.ascontiguousarray(weights.reshape(33, 32, 2, 34)[:, :, ::-1].reshape(weights.shape))
    x_moved = np.ascontiguousarray(x.reshape(17, 32, 2, 32)[:, :, ::-1].reshape(x.shape))
    reordered = np.roll(weights.reshape(33, 64, 34), 3, axis=1).reshape(weights.shape)
    x_reordered = np.roll(x.reshape(17, 64, 32), 3, axis=1).reshape(x.shape)
    with products(LIBRARY, RUNS_HERE[-1], 1) as use:
        right = use.matmul(kind, weights, x)[1]
        mirrored = use.matmul(kind, swapped, x_swapped)[1]
        neighbours = use.matmul(kind, moved, x_moved)[1]
        other = use.matmul(
            kind, np.ascontiguousarray(reordered), np.ascontiguousarray(x_reordered)
        )[1]
    # The tree is symmetric in neighbours and halves, and only in those.
    assert same(right, mirrored)
    assert same(right, neighbours)
    assert (bits(right) != bits(other)).mean() > 0.1


@EVERY_ISA
def test_a_row_of_negative_extremes_does_not_saturate(isa) -> None:
    kind = BY_NAME["Q8_0"]
    weights = np.full((1, kind.row_bytes(256)), 0x80, np.uint8).reshape(1, 8, 34)
    weights[..., :2] = np.array([1.0], np.float16).view(np.uint8)
    x = np.full((1, 256), np.float32(127))
    with products(LIBRARY, isa, 1) as use:
        code, y = use.matmul(kind, np.ascontiguousarray(weights.reshape(1, -1)), x)
    assert code == 0
    assert y[0, 0] == -128 * 127 * 256


def test_quantisation_differs_between_run_lengths() -> None:
    x = activation_rows(3, 512)
    with products(LIBRARY, RUNS_HERE[-1], 1) as use:
        _, short, _ = use.quantise(32, x)
        _, long, scale = use.quantise(256, x)
    wanted = activations.quantise(x, 256)
    assert (long == wanted.q).all()
    assert same(scale, wanted.scale)
    assert (short != long).any()
