"""Every op on every device present, against its definition; every named mistake must be seen."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import numpy as np
import pytest

from localglm.backends.base import Ops
from localglm.backends.reference.device import ReferenceDevice
from localglm.errors import ShapeError
from localglm.ops.error import measure
from localglm.ops.registry import OPS, op
from localglm.ops.spec import FLOAT64, HostCells, Precision

if TYPE_CHECKING:
    from conftest import Subject

    from localglm.arrays import AnyArray
    from localglm.backends.base import Device
    from localglm.ops.spec import Arguments, Case, OpSpec, Outputs, Variant

_SPECS = [pytest.param(spec, id=spec.name) for spec in OPS]
_VARIANTS = [
    pytest.param(spec, variant, id=f"{spec.name}: {variant.name}")
    for spec in OPS
    for variant in spec.variants
]


def _worst(spec: OpSpec, subject: Subject, cases: list[Case]) -> dict[str, float]:
    """Return the cases that miss their tolerance, and by how much."""
    over = {}
    for case in cases:
        got = spec.perform(subject.device, case.arguments)
        times = spec.excess(got, case, subject.precision)
        if times > 1:
            over[case.label] = times
    return over


@pytest.mark.parametrize("spec", _SPECS)
def test_every_device_computes_the_definition(spec: OpSpec, subject: Subject) -> None:
    assert _worst(spec, subject, spec.cases()) == {}


@pytest.mark.parametrize(("spec", "variant"), _VARIANTS)
def test_a_plausible_mistake_is_seen(spec: OpSpec, variant: Variant) -> None:
    exceeded = 0.0
    for case in spec.cases():
        wrong = spec.define(case.arguments, variant.definition)
        exceeded = max(exceeded, spec.excess(wrong, case, Precision.FLOAT32))
    assert exceeded >= variant.margin


def test_the_list_holds_every_op_once() -> None:
    methods = [n for n, _ in inspect.getmembers(Ops, inspect.isfunction) if n[0] != "_"]
    assert sorted(spec.name for spec in OPS) == sorted(methods)


def test_every_op_names_a_mistake() -> None:
    assert [spec.name for spec in OPS if not spec.variants] == []


# -- chunks --------------------------------------------------------------------------------------
def _in_two(spec: OpSpec, device: Device, arguments: Arguments, first: int) -> Outputs:
    """Run the first tokens, then the rest on the state they left."""
    head, rest = spec.split(arguments, first)
    one = spec.perform(device, head)
    carried = {name: _like(arguments[name], one[name]) for name in spec.state}
    two = spec.perform(device, {**rest, **carried})
    joined = {n: np.concatenate([one[n], two[n]]) for n in one if n not in spec.state}
    return joined | {name: two[name] for name in spec.state}


def _like(given: object, array: AnyArray) -> AnyArray:
    """Keep a half-precision cache in its type; the rest goes back as it came."""
    return array.astype(np.float16) if getattr(given, "dtype", None) == np.float16 else array


def _tokens(spec: OpSpec, arguments: Arguments) -> int:
    if spec.name == "pool_keys":
        return len(arguments["keys"]) // len(arguments["slot_bias"])
    if spec.name == "dense_cells":
        return arguments["count"]
    named = {"select_cells": "scores", "mla_attend": "query"}.get(spec.name)
    return len(arguments[named or spec.tokens[0]])


@pytest.mark.parametrize("spec", _SPECS)
def test_a_chunk_cut_in_two_gives_the_same(spec: OpSpec, subject: Subject) -> None:
    cut = 0
    for case in spec.cases():
        tokens = _tokens(spec, case.arguments)
        whole = spec.perform(subject.device, case.arguments)
        for first in {1, tokens // 2, tokens - 1} - {0} if tokens > 1 else ():
            cut += 1
            parts = _in_two(spec, subject.device, case.arguments, first)
            if subject.has_fixed_bits:
                for name, array in whole.items():
                    np.testing.assert_array_equal(parts[name], array, err_msg=case.label)
            else:
                assert measure(parts, whole).over(FLOAT64) <= 1, case.label
    assert cut


@pytest.mark.parametrize("name", ["short_conv", "kda_scan"])
def test_a_state_that_is_not_carried_is_seen(name: str) -> None:
    spec, device = op(name), ReferenceDevice()
    case = next(c for c in spec.cases() if _tokens(spec, c.arguments) == 17)
    whole = spec.perform(device, case.arguments)
    head, rest = spec.split(case.arguments, 5)
    one, two = spec.perform(device, head), spec.perform(device, rest)
    parts = {"out": np.concatenate([one["out"], two["out"]])}
    assert measure(parts, {"out": whole["out"]}).over(spec.float32) > 100


@pytest.mark.parametrize("spec", _SPECS)
def test_an_empty_chunk_is_refused(spec: OpSpec, subject: Subject) -> None:
    arguments = dict(spec.cases()[0].arguments)
    for name in arguments.keys() & set(spec.tokens):
        arguments[name] = arguments[name][:0]
    if spec.name == "pool_keys":
        arguments |= {name: arguments[name][:0] for name in ("keys", "gates")}
    if spec.name == "dense_cells":
        arguments["count"] = 0
    if spec.name == "select_cells":
        arguments["scores"] = arguments["scores"][:0]
    if spec.name == "mla_attend":
        arguments["query"] = arguments["query"][:0]
        cells = arguments["cells"]
        arguments["cells"] = HostCells(cells.index[:0], cells.count[:0])
    with pytest.raises(ShapeError):
        spec.perform(subject.device, arguments)
