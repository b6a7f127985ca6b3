"""Embedding, per-head products, experts and refusals of the native library."""

import numpy as np
import pytest

from localglm.quant import decode, elementary, product
from localglm.quant.types import Family, StorageType
from tests.cpu.products_library import (
    BY_NAME,
    bits,
    open_library,
    products,
    random_weights,
    same,
    supported,
    tame_weights,
)

LIBRARY = open_library()
RUNS_HERE = supported(LIBRARY)
EVERY_TYPE = pytest.mark.parametrize("kind", StorageType, ids=lambda kind: kind.name)
EVERY_ISA = pytest.mark.parametrize("isa", RUNS_HERE)
BAD_TYPE, BAD_SHAPE, BAD_INDEX, BAD_ISA = 2, 3, 4, 5

# gate, up and down of one type, of one family, and of three families.
MIXES = (
    ("Q8_0", "Q8_0", "Q8_0"),
    ("IQ2_XXS", "IQ3_S", "Q4_K"),
    ("Q4_K", "Q5_1", "F16"),
    ("F32", "IQ1_M", "IQ4_NL"),
)
D, F, EXPERTS = 512, 256, 7


def activation_rows(*shape):
    return np.random.default_rng(11).standard_normal(shape).astype(np.float32)


def experts_of(mix, make=tame_weights):
    gate, up, down = (BY_NAME[name] for name in mix)
    return (
        (gate, make(gate, (EXPERTS, F), D, seed=1)),
        (up, make(up, (EXPERTS, F), D, seed=2)),
        (down, make(down, (EXPERTS, D), F, seed=3)),
    )


def clamped(gate, up, limit):
    if limit is not None:
        gate = np.where(gate > limit, np.float32(limit), gate)
        up = np.where(up > limit, np.float32(limit), up)
        up = np.where(up < -limit, np.float32(-limit), up)
    with np.errstate(all="ignore"):
        return elementary.silu(gate) * up


def one_expert(sides, expert, x, limit):
    gate, up, down = ((kind, weights[expert]) for kind, weights in sides)
    with np.errstate(all="ignore"):
        hidden = clamped(product.matmul(*gate, x), product.matmul(*up, x), limit)
        return product.matmul(*down, hidden)


def wanted_rows(sides, x, ids, limit):
    rows = [
        [one_expert(sides, expert, x[t : t + 1], limit)[0] for expert in row]
        for t, row in enumerate(ids)
    ]
    return np.array(rows, np.float32)


@EVERY_ISA
@EVERY_TYPE
def test_embedding_decodes_the_rows_asked_for(kind, isa) -> None:
    cols = 768
    weights, ids = random_weights(kind, (9,), cols), [8, 0, 3, 3, 5, 8]
    with np.errstate(all="ignore"):
        wanted = decode.decode_rows(kind, weights)
    for threads in (1, 3):
        with products(LIBRARY, isa, threads) as use:
            code, y = use.embed(kind, weights, cols, ids)
        assert code == 0
        assert same(y, wanted[ids])
        assert not same(y, wanted[ids[::-1]])


@EVERY_ISA
@pytest.mark.parametrize("name", ["F32", "Q8_0", "Q6_K", "IQ3_XXS"])
@pytest.mark.parametrize("exact", [False, True])
def test_each_head_meets_its_own_matrix(name, isa, exact) -> None:
    kind = BY_NAME[name]
    weights, x = random_weights(kind, (3, 13), 256), activation_rows(6, 3, 256)
    with products(LIBRARY, isa, 2) as use:
        code, y = use.head_matmul(kind, weights, x, exact=exact)
        alone = [
            use.matmul(kind, weights[h], np.ascontiguousarray(x[:, h]), exact=exact)[1]
            for h in range(3)
        ]
    assert code == 0
    assert same(y, np.stack(alone, axis=1))
    assert not same(y, np.stack(alone[::-1], axis=1))


@EVERY_ISA
@pytest.mark.parametrize("mix", MIXES, ids="-".join)
@pytest.mark.parametrize("limit", [None, 0.25])
def test_experts_are_the_products_and_the_clamped_activation(mix, limit, isa) -> None:
    sides, x = experts_of(mix), activation_rows(5, D)
    ids = np.random.default_rng(3).permuted(np.tile(np.arange(EXPERTS), (5, 1)), axis=1)[:, :3]
    wanted = wanted_rows(sides, x, ids, limit)
    for threads in (1, 2, 5):
        with products(LIBRARY, isa, threads) as use:
            code, y = use.expert_ffn(sides, x, ids, limit)
        assert code == 0
        assert same(y, wanted)
    assert not same(wanted, wanted_rows(sides, x, ids, 0.5 if limit is None else None))


@EVERY_ISA
def test_experts_do_not_depend_on_who_shares_them(isa) -> None:
    sides, x = experts_of(MIXES[1]), activation_rows(17, D)
    ids = np.zeros((17, 1), np.int32)
    with products(LIBRARY, isa, 3) as use:
        together = use.expert_ffn(sides, x, ids, 7.0)[1]
        alone = [use.expert_ffn(sides, x[t : t + 1], ids[t : t + 1], 7.0)[1] for t in range(17)]
        elsewhere = use.expert_ffn(sides, x, ids + 1, 7.0)[1]
    assert same(together, np.concatenate(alone))
    assert not same(together, elsewhere)


@EVERY_ISA
def test_absent_experts_leave_their_rows_and_change_no_others(isa) -> None:
    sides, x = experts_of(MIXES[1]), activation_rows(9, D)
    ids = np.random.default_rng(4).permuted(np.tile(np.arange(EXPERTS), (9, 1)), axis=1)[:, :3]
    some = [1, 4]
    here = np.isin(ids, some)
    with products(LIBRARY, isa, 2) as use:
        whole = use.expert_ffn(sides, x, ids, 7.0)[1]
        code, part = use.expert_ffn(sides, x, ids, 7.0, present=some)
        none = use.expert_ffn(sides, x, ids, 7.0, present=[])
    assert code == 0
    assert same(part[here], whole[here])
    assert (part[~here] == np.float32(7e7)).all()
    assert none[0] == 0
    assert (none[1] == np.float32(7e7)).all()
    assert here.any()
    assert not here.all()


@EVERY_ISA
def test_exact_experts_take_decoded_weights(isa) -> None:
    mix, x, ids = MIXES[2], activation_rows(4, D), np.array([[2, 6], [6, 0], [1, 2], [3, 6]])
    sides = experts_of(mix)
    wide = tuple(
        (StorageType.F32, np.stack([decode.decode_rows(kind, m) for m in weights]).view(np.uint8))
        for kind, weights in sides
    )
    with products(LIBRARY, isa, 2) as use:
        exact = use.expert_ffn(sides, x, ids, 7.0, exact=True)[1]
        decoded = use.expert_ffn(wide, x, ids, 7.0)[1]
        quantised = use.expert_ffn(sides, x, ids, 7.0)[1]
    assert same(exact, decoded)
    assert not same(exact, quantised)


@EVERY_ISA
@pytest.mark.parametrize("mix", [("F32", "F32", "F32"), MIXES[0]], ids="-".join)
def test_nan_passes_through_the_clamps(mix, isa) -> None:
    sides, x = experts_of(mix), activation_rows(2, D)
    x[1, 100] = np.nan
    with products(LIBRARY, isa, 1) as use:
        code, y = use.expert_ffn(sides, x, [[0, 1], [2, 3]], 0.25)
    assert code == 0
    assert np.isfinite(y[0]).all()
    assert np.isnan(y[1]).all()


@EVERY_TYPE
def test_row_bytes_are_those_of_the_format(kind) -> None:
    number = kind.value.ggml_id
    assert LIBRARY.lg_row_bytes(number, 768) == kind.row_bytes(768)
    assert LIBRARY.lg_row_bytes(number, 0) == 0
    if kind.family is not Family.FLOAT:
        assert LIBRARY.lg_row_bytes(number, 768 + 1) == 0


def test_unknown_types_have_no_row_bytes() -> None:
    known = {kind.value.ggml_id for kind in StorageType}
    assert all(LIBRARY.lg_row_bytes(n, 256) == 0 for n in range(-1, 40) if n not in known)


def test_what_cannot_be_computed_is_refused_with_its_code() -> None:
    kind, x, y = BY_NAME["Q8_0"], activation_rows(1, 64), np.zeros(64, np.float32)
    weights = random_weights(kind, (2,), 64)
    with products(LIBRARY, "portable", 1) as use:

        def code(isa=0, number=kind.value.ggml_id, rows=2, cols=64, tokens=1):
            return LIBRARY.lg_matmul(
                use.pool, isa, 0, number, weights.ctypes.data, rows, cols, x.ctypes.data, tokens,
                y.ctypes.data,
            )  # fmt: skip

        assert code() == 0
        assert [code(isa=-1), code(isa=9)] == [BAD_ISA] * 2
        assert [code(number=n) for n in (-1, 4, 15, 31, 10**6)] == [BAD_TYPE] * 5
        assert [code(rows=0), code(cols=63), code(cols=0), code(tokens=0)] == [BAD_SHAPE] * 4
        assert use.embed(kind, weights, 64, [0, 2])[0] == BAD_INDEX
        assert use.embed(kind, weights, 64, [-1])[0] == BAD_INDEX
        assert use.embed(kind, weights, 64, [1])[0] == 0


@pytest.mark.parametrize("wrong", [-1, EXPERTS])
def test_an_expert_that_does_not_exist_is_refused(wrong) -> None:
    sides, x = experts_of(MIXES[0]), activation_rows(2, D)
    with products(LIBRARY, "portable", 2) as use:
        assert use.expert_ffn(sides, x, [[0], [wrong]], None)[0] == BAD_INDEX
        assert use.expert_ffn(sides, x, [[0], [1]], None)[0] == 0


def test_the_codes_leave_no_bits_of_one_row_in_another() -> None:
    kind, x = BY_NAME["Q4_1"], activation_rows(6, 320)
    weights = random_weights(kind, (12,), 320)
    with products(LIBRARY, RUNS_HERE[-1], 2) as use:
        whole = use.matmul(kind, weights, x)[1]
        parts = [use.matmul(kind, weights[r : r + 1], x)[1] for r in range(12)]
    assert (bits(np.concatenate(parts, axis=1)) == bits(whole)).all()
