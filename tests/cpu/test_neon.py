"""The ARM kernels under emulation, against the vectors and against the library of this machine.

No speed is measured here: an emulator says nothing about it.
"""

import numpy as np
import pytest

from build_tools import native
from localglm.quant.types import Family, StorageType
from tests.cpu.neon.ops_calls import op_calls
from tests.cpu.neon.runner import Call, Runner, build_runner
from tests.cpu.products_library import bits, open_library, random_weights
from tests.cpu.test_products import conformance_activations, lengths_of, vectors

pytestmark = pytest.mark.long
WITH_DOT_PRODUCTS, WITHOUT = "max", "cortex-a53"
EVERY_TYPE = pytest.mark.parametrize("kind", StorageType, ids=lambda kind: kind.name)
TOKENS = (1, 2, 3, 4, 8)
LENGTHS = {
    Family.FLOAT: (1, 31, 33, 200),
    Family.RUN32: (32, 224, 256, 2080),
    Family.SUPER: (256, 2048, 2304),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_runner(tmp_path_factory.mktemp("neon") / "runner")


@pytest.fixture(scope="module")
def here():
    library = open_library()
    pool = library.lg_pool_create(2)
    yield library, pool
    library.lg_pool_destroy(pool)


def matmul(kind, weights, x, *, exact=False):
    rows, cols = len(weights), x.shape[1]
    y = np.full((len(x), rows), np.float32(7e7))
    sizes = (exact, kind.value.ggml_id, weights, rows, cols, x, len(x), y)
    return Call("lg_matmul", sizes)


def quantise(run, x):
    q = np.empty(x.shape, np.int8)
    d = np.empty((len(x), -(-x.shape[1] // run)), np.float32)
    return Call("lg_quantise", (run, x, *x.shape, q, d))


def parts(x, count):
    return [np.ascontiguousarray(x[at : at + count]) for at in range(0, len(x), count)]


def differences(kind, runner, isa, stored):
    """How many results of each kind of product differ from the stored ones."""
    wrong = {}
    activations = conformance_activations()["x"].view(np.float32)
    for cols in lengths_of(stored):
        weights, wanted = stored[f"w_{cols}"], stored[f"y_{cols}"]
        x = activations[:, :cols]
        for tokens in TOKENS:
            calls = [matmul(kind, weights, part) for part in parts(x, tokens)]
            answers = runner.answers(isa, calls)
            assert all(code == 0 for code, _ in answers)
            y = np.concatenate([arrays[-1] for _, arrays in answers])
            wrong[cols, tokens] = int((bits(y) != wanted).sum())
        if kind.family is not Family.FLOAT:
            [(_, arrays)] = runner.answers(isa, [matmul(kind, weights, x.copy(), exact=True)])
            wrong[cols, "exact"] = int((bits(arrays[-1]) != stored[f"float_y_{cols}"]).sum())
    return {where: count for where, count in wrong.items() if count}


def test_the_processor_is_asked_for_dot_products(program) -> None:
    assert Runner(program, WITH_DOT_PRODUCTS).best_isa() == 2
    old = Runner(program, WITHOUT)
    assert old.best_isa() == 0
    weights = random_weights(StorageType.Q8_0, (1,), 32)
    call = matmul(StorageType.Q8_0, weights, np.ones((1, 32), np.float32))
    refused = 5
    assert old.answers("neon", [call])[0][0] == refused


@pytest.mark.parametrize(
    ("isa", "processor"),
    [("neon", WITH_DOT_PRODUCTS), ("portable", WITHOUT)],
    ids=["neon", "portable without dot products"],
)
@EVERY_TYPE
def test_the_conformance_vectors_hold_for_any_number_of_tokens(
    program, kind, isa, processor
) -> None:
    assert differences(kind, Runner(program, processor), isa, vectors(kind)) == {}


def test_a_changed_bit_of_a_vector_is_found(program) -> None:
    stored = vectors(StorageType.Q4_K)
    stored["y_768"][1, 1] ^= 1
    wrong = differences(StorageType.Q4_K, Runner(program, WITH_DOT_PRODUCTS), "neon", stored)
    assert wrong == {(768, tokens): 1 for tokens in TOKENS}


def test_a_build_whose_compiler_may_reorder_sums_is_found(tmp_path) -> None:
    reordered = build_runner(tmp_path / "reordered", (*native.FLAGS, "-ffast-math"))
    runner = Runner(reordered, WITH_DOT_PRODUCTS)
    assert differences(StorageType.Q8_0, runner, "neon", vectors(StorageType.Q8_0))


@pytest.mark.parametrize("isa", ["neon", "portable"])
def test_quantised_activations_are_those_of_the_vectors(program, isa) -> None:
    stored = conformance_activations()
    runner = Runner(program, WITH_DOT_PRODUCTS)
    for run in (32, 256):
        for cols in (96, 300, 2560):
            x = np.ascontiguousarray(stored["x"].view(np.float32)[:, :cols])
            [(code, (_, q, d))] = runner.answers(isa, [quantise(run, x)])
            assert code == 0
            assert (q == stored[f"q_{run}_{cols}"]).all()
            assert (bits(d) == stored[f"scale_{run}_{cols}"]).all()


@EVERY_TYPE
def test_random_blocks_give_the_bits_of_this_machine(program, here, kind) -> None:
    rng = np.random.default_rng(kind.value.ggml_id)
    calls = []
    for cols in LENGTHS[kind.family]:
        weights = random_weights(kind, (33,), cols)
        for tokens in (*TOKENS, 5, 6, 11):
            x = rng.standard_normal((tokens, cols)).astype(np.float32)
            calls.append(matmul(kind, weights, x))
    same_bits(calls, Runner(program, WITH_DOT_PRODUCTS), "neon", here)


@pytest.mark.parametrize(
    ("isa", "processor"),
    [("neon", WITH_DOT_PRODUCTS), ("portable", WITHOUT)],
    ids=["neon", "portable without dot products"],
)
def test_every_other_op_gives_the_bits_of_this_machine(program, here, isa, processor) -> None:
    same_bits(op_calls(), Runner(program, processor), isa, here)


def same_bits(calls, runner, isa, here) -> None:
    for call, (code, arrays) in zip(calls, runner.answers(isa, calls), strict=True):
        wanted_code, wanted = call.here(*here, "portable")
        assert code == wanted_code == 0, call.name
        for ours, theirs in zip(arrays, wanted, strict=True):
            if ours.dtype == np.float32:
                assert (bits(ours) == bits(theirs)).all(), call.name
            else:
                assert (ours == theirs).all(), call.name
