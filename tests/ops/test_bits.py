"""Results the arithmetic contract fixes to the bit, on devices that keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from localglm.backends.cpu.device import CpuDevice
from localglm.ops.registry import OPS, op
from localglm.quant import elementary, exact, product
from localglm.quant.types import Family, StorageType

if TYPE_CHECKING:
    from localglm.arrays import F32
    from localglm.backends.base import Device, StoredMatrix
    from localglm.ops.spec import Case, OpSpec

BLOCKS = [t for t in StorageType if t.family is not Family.FLOAT]


def _rows(weight: StoredMatrix) -> np.ndarray:
    return weight.data.reshape(*weight.shape[:-1], -1)


@pytest.mark.parametrize("storage", list(StorageType), ids=lambda t: t.name)
def test_a_product_is_the_contract_bit_for_bit(fixed_bits: Device, storage: StorageType) -> None:
    cases = [c for c in op("matmul").cases() if c.arguments["weight"].type is storage]
    assert cases
    for case in cases:
        weight, x = case.arguments["weight"], case.arguments["x"]
        want = product.matmul(storage, _rows(weight), x)
        got = op("matmul").perform(fixed_bits, case.arguments)["out"]
        np.testing.assert_array_equal(got, want, err_msg=case.label)


@pytest.mark.parametrize("storage", BLOCKS, ids=lambda t: t.name)
def test_another_order_of_sums_would_be_seen(storage: StorageType) -> None:
    """The control: float64 sums of the same products round differently somewhere."""
    spec = op("matmul")
    cases = [c for c in spec.cases() if c.arguments["weight"].type is storage]
    differs = False
    for case in cases:
        want = product.matmul(storage, _rows(case.arguments["weight"]), case.arguments["x"])
        differs |= not np.array_equal(spec.define(case.arguments)["out"].astype(np.float32), want)
    assert differs


def _expert_row(case: Case, x: F32, e: int) -> F32:
    held = case.arguments["experts"]
    weights = [held.gate, held.up, held.down]
    limit = case.arguments["limit"]
    gate, up = (product.matmul(w.type, _rows(w)[e], x) for w in weights[:2])
    if limit is not None:
        bound = np.float32(limit)
        gate, up = np.minimum(gate, bound), np.maximum(np.minimum(up, bound), -bound)
    middle = (elementary.silu(gate) * up).astype(np.float32)
    return product.matmul(weights[2].type, _rows(weights[2])[e], middle)


def test_expert_rows_are_the_contract_bit_for_bit(fixed_bits: Device) -> None:
    spec = op("expert_ffn")
    for case in spec.cases():
        x, ids = case.arguments["x"], case.arguments["ids"]
        got = spec.perform(fixed_bits, case.arguments)["out"]
        for t, r in [(0, 0), (len(ids) - 1, ids.shape[1] - 1)]:
            want = _expert_row(case, x[t : t + 1], ids[t, r])[0]
            np.testing.assert_array_equal(got[t, r], want, err_msg=case.label)


def _added(rows: F32, weights: F32, shared: F32) -> F32:
    total = np.zeros_like(shared)
    for r in range(rows.shape[1]):
        total = exact.fma(weights[:, r, None], rows[:, r], total)
    return total + shared


def test_expert_rows_are_added_in_rank_order(fixed_bits: Device) -> None:
    spec, differs = op("combine"), False
    for case in spec.cases():
        rows, weights, shared = (case.arguments[n] for n in ("rows", "weights", "shared"))
        want = _added(rows, weights, shared)
        np.testing.assert_array_equal(spec.perform(fixed_bits, case.arguments)["out"], want)
        differs |= not np.array_equal(want, _added(rows[:, ::-1], weights[:, ::-1], shared))
    assert differs


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in OPS])
def test_every_instruction_set_and_thread_count_gives_the_same_bits(
    spec: OpSpec, fixed_bits: Device
) -> None:
    plain = CpuDevice(threads=1, isa="portable")
    for case in spec.cases():
        want = spec.perform(plain, case.arguments)
        for name, array in spec.perform(fixed_bits, case.arguments).items():
            np.testing.assert_array_equal(array, want[name], err_msg=case.label)
    plain.close()
