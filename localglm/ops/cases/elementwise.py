"""Cases and mistakes of the element-wise ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.cases.random import TOKENS, WIDTHS, generator, normal
from localglm.ops.reference import elementwise as ref
from localglm.ops.spec import Case, OpSpec, Variant

if TYPE_CHECKING:
    from localglm.arrays import F32, F64, AnyArray

_EDGES = (0.0, -0.0, 1e-40, -1e-40, 80.0, -80.0, 88.9, -88.9, 104.5, -104.5, 1e4, -1e4)


def _shapes() -> list[tuple[int, int]]:
    return [(t, 33) for t in TOKENS] + [(2, width) for width in WIDTHS]


def _edges() -> F32:
    return np.array([(*_EDGES, np.inf, np.nan)], dtype=np.float32)


def _one(name: str) -> list[Case]:
    out = [
        Case(f"{t}x{width}", {"x": normal(generator(f"{name} {t} {width}"), t, width, scale=3)})
        for t, width in _shapes()
    ]
    return [*out, Case("edge values", {"x": _edges()})]


def _two(name: str) -> list[Case]:
    out = []
    for t, width in _shapes():
        source = generator(f"{name} {t} {width}")
        x, y = normal(source, t, width), normal(source, t, width)
        out.append(Case(f"{t}x{width}", {"x": x, "y": y}))
    return [*out, Case("not finite", {"x": _edges(), "y": np.ones_like(_edges())})]


def _pairs() -> list[Case]:
    out = []
    for limit in (None, 0.5, 10.0):
        for t, width in _shapes():
            source = generator(f"swiglu {limit} {t} {width}")
            gate = normal(source, t, width, scale=(limit or 1.0) * 2)
            up = normal(source, t, width, scale=(limit or 1.0) * 2)
            arguments = {"gate": gate, "up": up, "limit": limit}
            out.append(Case(f"{t}x{width} limit {limit}", arguments))
        edges = {"gate": _edges(), "up": np.full_like(_edges(), 2.0), "limit": limit}
        out.append(Case(f"edge gates limit {limit}", edges))
        ends = {"gate": np.full_like(_edges(), 2.0), "up": _edges(), "limit": limit}
        out.append(Case(f"edge ups limit {limit}", ends))
    return out


def _cut_both_sides(gate: F64, up: F64, limit: float | None) -> F64:
    cut = gate if limit is None else np.clip(gate, -limit, limit)
    return ref.swiglu(cut, up, limit)


def _cut_after_silu(gate: F64, up: F64, limit: float | None) -> F64:
    gated = ref.silu(gate)
    if limit is None:
        return ref.swiglu(gate, up, limit)
    return np.asarray(np.minimum(gated, limit) * np.clip(up, -limit, limit))


def _cut_up_above_only(gate: F64, up: F64, limit: float | None) -> F64:
    if limit is None:
        return ref.swiglu(gate, up, limit)
    return np.asarray(ref.silu(np.minimum(gate, limit)) * np.minimum(up, limit))


def _never_cut(gate: F64, up: F64, limit: float | None) -> F64:
    del limit
    return ref.swiglu(gate, up, None)


def _negated(x: AnyArray) -> AnyArray:
    return ref.sigmoid(-x)


SIGMOID = OpSpec(
    name="sigmoid",
    formula="1 / (1 + exp(-x))",
    definition=ref.sigmoid,
    cases=lambda: _one("sigmoid"),
    tokens=("x",),
    variants=(
        Variant("exponent without its minus", _negated),
        Variant("silu in its place", ref.silu),
    ),
)

SWIGLU = OpSpec(
    name="swiglu",
    formula="silu(min(gate, limit)) * min(max(up, -limit), limit)",
    definition=ref.swiglu,
    cases=_pairs,
    tokens=("gate", "up"),
    variants=(
        Variant("gate cut from below too", _cut_both_sides),
        Variant("gate cut after silu", _cut_after_silu),
        Variant("up cut from above only", _cut_up_above_only),
        Variant("no clamp", _never_cut),
        Variant("gate and up swapped", lambda gate, up, limit: ref.swiglu(up, gate, limit)),
    ),
)

ADD = OpSpec(
    name="add",
    formula="x + y",
    definition=ref.add,
    cases=lambda: _two("add"),
    tokens=("x", "y"),
    variants=(Variant("y subtracted", lambda x, y: x - y),),
)

CONCAT = OpSpec(
    name="concat",
    formula="[x ; y] on the last axis",
    definition=ref.concat,
    cases=lambda: _two("concat"),
    tokens=("x", "y"),
    variants=(Variant("halves swapped", lambda x, y: ref.concat(y, x)),),
)
