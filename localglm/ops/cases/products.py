"""Cases and mistakes of the products, for every storage type.

Row lengths are whole blocks of the type: one block, one more than a run of eight, and for float
types lengths around 32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.arrays import F64
from localglm.backends.base import StoredExperts, StoredMatrix
from localglm.ops.cases.random import TOKENS, WIDTHS, generator, matrix, normal
from localglm.ops.error import Tolerance
from localglm.ops.reference import products as ref
from localglm.ops.spec import Arguments, Case, OpSpec, Variant, decoded
from localglm.quant.types import Family, StorageType

if TYPE_CHECKING:
    from localglm.arrays import AnyArray

_LENGTHS = {
    Family.FLOAT: WIDTHS,
    Family.RUN32: (32, 160, 256, 288, 512),
    Family.SUPER: (256, 512, 2304),
}
PRODUCT = Tolerance(1e-12, 8e-6)


def lengths(storage: StorageType) -> tuple[int, ...]:
    """Return the row lengths a type is tried with."""
    return _LENGTHS[storage.family]


def _embed_cases() -> list[Case]:
    out = []
    for storage in StorageType:
        for width in lengths(storage):
            source = generator(f"embed {storage.name} {width}")
            table = matrix(source, storage, 6, width)
            ids = [int(i) for i in source.integers(0, 6, 3)] + [0, 5, 5]
            out.append(Case(f"{storage.name} {width}", {"table": table, "ids": ids}))
    return out


def _matmul_cases() -> list[Case]:
    out = []
    for storage in StorageType:
        for place, width in enumerate(lengths(storage)):
            for t in TOKENS if place == 1 else (1, 3):
                source = generator(f"matmul {storage.name} {width} {t}")
                weight = matrix(source, storage, 3 if width == 512 else 7, width)
                label = f"{storage.name} {t}x{width}"
                out.append(Case(label, {"weight": weight, "x": normal(source, t, width)}))
    for storage in (StorageType.F32, StorageType.Q8_0, StorageType.Q4_K):
        out += _degenerate(storage)
    return out


def _degenerate(storage: StorageType) -> list[Case]:
    source = generator(f"degenerate {storage.name}")
    weight, x = matrix(source, storage, 5, 256), normal(source, 3, 256)
    broken = x.copy()
    broken[1, 200] = np.nan
    return [
        Case(f"{storage.name} zeros", {"weight": weight, "x": 0 * x}),
        Case(f"{storage.name} a row with NaN", {"weight": weight, "x": broken}),
        Case(f"{storage.name} small rows", {"weight": weight, "x": np.float32(1e-20) * x}),
    ]


def _rounding(arguments: Arguments) -> F64:
    """Return the standard deviation of y when every x is rounded to 255 steps of its run."""
    weight, x = arguments["weight"], arguments["x"]
    assert isinstance(weight, StoredMatrix)
    assert isinstance(x, np.ndarray)
    run = 32 if weight.type.family is Family.RUN32 else 256
    variance = np.zeros(x.shape)
    for start in range(0, x.shape[-1], run):
        piece = x[..., start : start + run].astype(np.float64)
        step = np.max(np.abs(piece), axis=-1, keepdims=True) / 127
        variance[..., start : start + run] = step**2 / 12
    axes = "oi,ti->to" if x.ndim == 2 else "hoi,thi->tho"
    return np.asarray(np.sqrt(np.einsum(axes, decoded(weight) ** 2, variance)))


def _head_cases() -> list[Case]:
    out = []
    for storage in (StorageType.F32, StorageType.BF16, StorageType.Q8_0, StorageType.Q5_K):
        width = 256 if storage.family is Family.SUPER else 64
        for t in TOKENS:
            for heads in (1, 3):
                source = generator(f"head_matmul {storage.name} {t} {heads}")
                weight = matrix(source, storage, heads, 5, width)
                arguments = {"weight": weight, "x": normal(source, t, heads, width)}
                out.append(Case(f"{storage.name} {t}x{heads}x{width}", arguments))
    return out


_MIXES = (
    (StorageType.F32, StorageType.F32, StorageType.F32),
    (StorageType.F16, StorageType.BF16, StorageType.F32),
    (StorageType.Q8_0, StorageType.Q8_0, StorageType.Q8_0),
    (StorageType.IQ2_XXS, StorageType.IQ2_XXS, StorageType.Q2_K),
    (StorageType.IQ3_S, StorageType.Q4_K, StorageType.IQ4_NL),
)


def _expert_cases() -> list[Case]:
    out = []
    for mix in _MIXES:
        out += [_experts(t, 5, 3, mix, "spread", None) for t in TOKENS]
        out.append(_experts(3, 5, 2, mix, "one expert", 0.5))
        out.append(_experts(3, 4, 4, mix, "every expert", 0.5))
        out.append(_experts(2, 5, 1, mix, "spread", 10.0))
    return out


def _experts(
    t: int,
    experts: int,
    used: int,
    mix: tuple[StorageType, StorageType, StorageType],
    kind: str,
    limit: float | None,
) -> Case:
    label = f"{'/'.join(s.name for s in mix)} {t} tokens, {used} of {experts}, {kind}, {limit}"
    source = generator(f"expert_ffn {label}")
    quantised = any(s.family is not Family.FLOAT for s in mix)
    d, f = (256, 256) if quantised else (33, 47)
    ids = np.argsort(source.random((t, experts)), axis=1)[:, :used]
    gate, up = (matrix(source, storage, experts, f, d) for storage in mix[:2])
    # gates of unit size: larger ones would multiply the rounding of x where SiLU is steep
    size = 1 / np.sqrt(d * np.mean(decoded(gate) ** 2)).item()
    if kind == "one expert":
        ids[:, 0] = 3
        ids[:, 1] = 0
    arguments = {
        "experts": StoredExperts(3, gate, up, matrix(source, mix[2], experts, d, f)),
        "x": normal(source, t, d, scale=size),
        "ids": ids.astype(np.int32),
        "limit": limit,
    }
    return Case(label, arguments)


_Sides = tuple[F64, F64, F64]


def _define_experts(experts: _Sides, x: F64, ids: AnyArray, limit: float | None) -> F64:
    gate, up, down = experts
    return ref.expert_ffn(lambda e: (gate[e], up[e], down[e]), x, ids, limit)


def _rows_by_expert(experts: _Sides, x: F64, ids: AnyArray, limit: float | None) -> F64:
    return _define_experts(experts, x, np.sort(ids, axis=1), limit)


def _first_choice_only(experts: _Sides, x: F64, ids: AnyArray, limit: float | None) -> F64:
    return _define_experts(experts, x, np.repeat(ids[:, :1], ids.shape[1], axis=1), limit)


EMBED = OpSpec(
    name="embed",
    formula="row ids[m] of the table",
    definition=lambda table, ids: ref.embed(table, np.asarray(ids)),
    cases=_embed_cases,
    tokens=("ids",),
    variants=(
        Variant("next row", lambda table, ids: np.roll(table, -1, axis=0)[np.asarray(ids)]),
        Variant("scaled by sqrt(d)", lambda table, ids: (
            table[np.asarray(ids)] * np.sqrt(table.shape[1]))),
    ),
)  # fmt: skip

MATMUL = OpSpec(
    name="matmul",
    formula="y[o] = sum_i weight[o, i] x[i]",
    definition=ref.matmul,
    rounding=_rounding,
    cases=_matmul_cases,
    tokens=("x",),
    float32=PRODUCT,
    variants=(
        Variant("rows reversed", lambda weight, x: ref.matmul(weight[::-1], x)),
        Variant("last block missed", lambda weight, x: ref.matmul(weight[:, :-1], x[:, :-1])),
    ),
)

HEAD_MATMUL = OpSpec(
    name="head_matmul",
    formula="y[h, o] = sum_i weight[h, o, i] x[h, i]",
    definition=ref.head_matmul,
    rounding=_rounding,
    cases=_head_cases,
    tokens=("x",),
    float32=PRODUCT,
    variants=(
        Variant("heads reversed", lambda weight, x: ref.head_matmul(weight[::-1], x)),
        Variant("first head's matrix for all", lambda weight, x: ref.head_matmul(
            np.broadcast_to(weight[:1], weight.shape), x)),
    ),
)  # fmt: skip

EXPERT_FFN = OpSpec(
    name="expert_ffn",
    formula="row r = down_e (silu(min(gate_e x, limit)) clip(up_e x, -limit, limit)), e = ids[r]",
    definition=_define_experts,
    cases=_expert_cases,
    tokens=("x", "ids"),
    float32=PRODUCT,
    variants=(
        Variant("rows in expert order, not rank order", _rows_by_expert),
        Variant("first choice for every rank", _first_choice_only),
        Variant("no clamp", lambda **given: _define_experts(**{**given, "limit": None})),
        Variant("gate and up swapped", lambda experts, **given: (
            _define_experts((experts[1], experts[0], experts[2]), **given))),
    ),
)  # fmt: skip
