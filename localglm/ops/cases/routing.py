"""Cases and mistakes of expert choice and of the weighted sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.cases.random import TOKENS, WIDTHS, generator, normal
from localglm.ops.reference import routing as ref
from localglm.ops.reference.elementwise import logistic
from localglm.ops.spec import Case, OpSpec, Variant

if TYPE_CHECKING:
    from localglm.arrays import F64, I32, AnyArray

SCALE = 2.5


def _route_cases() -> list[Case]:
    out = [_route(t, 24, 8, "spread") for t in TOKENS]
    out += [_route(3, 8, 8, "spread"), _route(3, 9, 1, "spread"), _route(17, 288, 8, "spread")]
    out += [_route(3, 24, 8, kind) for kind in ("ties", "equal", "unlikely", "one expert")]
    return [*out, _forced(2, 24, 8), _forced(17, 24, 8)]


def _route(t: int, experts: int, used: int, kind: str) -> Case:
    label = f"{t} tokens, {used} of {experts}, {kind}"
    source = generator(f"route {label}")
    logits, bias = normal(source, t, experts), normal(source, experts, scale=0.3)
    if kind == "ties":
        logits, bias = np.round(logits), np.zeros_like(bias)
    if kind == "equal":
        logits, bias = np.zeros_like(logits), np.zeros_like(bias)
    if kind == "unlikely":
        logits = logits - 30
    if kind == "one expert":
        bias[5] = 8
    given = {"logits": logits, "bias": bias, "used": used, "scale": SCALE}
    return Case(label, given)


def _forced(t: int, experts: int, used: int) -> Case:
    plain = _route(t, experts, used, "forced")
    source = generator(f"forced {t}")
    ids = np.argsort(source.random((t, experts)), axis=1)[:, :used].astype(np.int32)
    return Case(plain.label, {**plain.arguments, "forced": ids})


def _wrong(
    logits: F64, bias: F64, used: int, scale: float, forced: AnyArray | None, how: str
) -> tuple[I32, F64]:
    chance = logistic(logits)
    if how == "softmax":
        chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    order = chance + (0 if how == "no bias" else bias)
    last = order.shape[1] - 1
    ids = np.argsort(-order, axis=1, kind="stable")[:, :used]
    if how == "ties to the higher":
        ids = last - np.argsort(-order[:, ::-1], axis=1, kind="stable")[:, :used]
    if forced is not None:
        ids = forced
    picked = np.take_along_axis(order if how == "biased weights" else chance, ids, axis=1)
    total = 1.0 if how == "not normalised" else picked.sum(axis=1, keepdims=True) + 1e-20
    weights = (1.0 if how == "not scaled" else scale) * picked / total
    return ids.astype(np.int32), np.asarray(weights)


def _variant(how: str) -> Variant:
    def run(
        logits: F64, bias: F64, used: int, scale: float, forced: AnyArray | None = None
    ) -> tuple[I32, F64]:
        return _wrong(logits, bias, used, scale, forced, how)

    return Variant(how, run)


def _combine_cases() -> list[Case]:
    out = []
    shapes = [(t, 8, 33) for t in TOKENS] + [(2, 3, width) for width in WIDTHS] + [(2, 1, 32)]
    for t, used, width in shapes:
        source = generator(f"combine {t} {used} {width}")
        arguments = {
            "rows": normal(source, t, used, width),
            "weights": source.uniform(0, 1, (t, used)).astype(np.float32),
            "shared": normal(source, t, width),
        }
        out.append(Case(f"{t}x{used}x{width}", arguments))
    return out


ROUTE = OpSpec(
    name="route",
    formula="ids = largest of P + bias, P = sigmoid(logits); w = scale P / (sum P + 1e-20)",
    definition=ref.route,
    cases=_route_cases,
    outputs=("ids", "weights"),
    host=("forced",),
    tokens=("logits", "forced"),
    variants=tuple(
        _variant(how)
        for how in (
            "biased weights",
            "no bias",
            "softmax",
            "not scaled",
            "not normalised",
            "ties to the higher",
        )
    ),
)

COMBINE = OpSpec(
    name="combine",
    formula="sum_r weights[r] rows[r] in rank order, then + shared",
    definition=ref.combine,
    cases=_combine_cases,
    tokens=("rows", "weights", "shared"),
    variants=(
        Variant(
            "shared expert scaled too",
            lambda rows, weights, shared: ref.combine(rows, weights, SCALE * shared),
        ),
        Variant(
            "rows against the order of the weights",
            lambda rows, weights, shared: ref.combine(rows[:, ::-1], weights, shared),
        ),
    ),
)
