"""Cases and mistakes of the norms. Small rows make the epsilon matter, zero rows need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.cases.random import TOKENS, WIDTHS, generator, normal
from localglm.ops.reference import norms as ref
from localglm.ops.reference.elementwise import logistic, silu
from localglm.ops.spec import Case, OpSpec, Variant

if TYPE_CHECKING:
    from localglm.arrays import F32, F64

EPSILON = 1e-5
LAYER_NORM_EPSILON = 1e-6


def _rows(name: str) -> list[tuple[str, F32]]:
    out = []
    for t, width in [(t, 160) for t in TOKENS] + [(2, width) for width in WIDTHS]:
        out.append((f"{t}x{width}", normal(generator(f"{name} {t} {width}"), t, width)))
    source = generator(name)
    out.append(("small rows", normal(source, 3, 32, scale=1e-3)))
    out.append(("large rows", normal(source, 3, 32, scale=1e15)))
    out.append(("a zero row", normal(source, 3, 32) * np.array([[1], [0], [1]], dtype=np.float32)))
    broken = normal(source, 3, 32)
    broken[1, 7] = np.nan
    out.append(("a row with NaN", broken))
    return out


def _rms_cases() -> list[Case]:
    return [
        Case(label, {"x": x, "weight": _weight(label, x.shape[-1]), "epsilon": EPSILON})
        for label, x in _rows("rms_norm")
    ]


def _layer_cases() -> list[Case]:
    out = []
    for label, x in _rows("layer_norm"):
        width = x.shape[-1]
        weight, bias = _weight(label, width), normal(generator(f"bias {label}"), width)
        arguments = {"x": x, "weight": weight, "bias": bias, "epsilon": LAYER_NORM_EPSILON}
        out.append(Case(label, arguments))
    return out


def _gated_cases() -> list[Case]:
    out = []
    for t, heads, width in [(1, 1, 32), (2, 3, 31), (3, 2, 33), (17, 4, 128), (2, 2, 160)]:
        for scale in (1.0, 1e-3):
            label = f"{t}x{heads}x{width} times {scale}"
            source = generator(f"gated_norm {label}")
            x, gate = normal(source, t, heads, width, scale=scale), normal(source, t, heads, width)
            given = {"x": x, "weight": _weight(label, width), "gate": gate, "epsilon": EPSILON}
            out.append(Case(label, given))
    return out


def _weight(label: str, width: int) -> F32:
    return 1 + normal(generator(f"weight {label}"), width, scale=0.3)


def _root_first(x: F64, weight: F64, epsilon: float) -> F64:
    root = np.sqrt(np.mean(x * x, axis=-1, keepdims=True))
    return np.asarray(weight * x / (root + epsilon))


def _unbiased(x: F64, weight: F64, bias: F64, epsilon: float) -> F64:
    n = x.shape[-1]
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.sum(centred * centred, axis=-1, keepdims=True) / (n - 1)
    return np.asarray(weight * centred / np.sqrt(variance + epsilon) + bias)


def _not_centred(x: F64, weight: F64, bias: F64, epsilon: float) -> F64:
    return ref.rms_norm(x, weight, epsilon) + bias


def _other_epsilon(x: F64, weight: F64, bias: F64, epsilon: float) -> F64:
    return ref.layer_norm(x, weight, bias, 10 * epsilon)


def _silu_gate(x: F64, weight: F64, gate: F64, epsilon: float) -> F64:
    return ref.rms_norm(x, weight, epsilon) * silu(gate)


def _gate_first(x: F64, weight: F64, gate: F64, epsilon: float) -> F64:
    return ref.rms_norm(x * logistic(gate), weight, epsilon)


def _all_heads(x: F64, weight: F64, gate: F64, epsilon: float) -> F64:
    mean_square = np.mean(x * x, axis=(1, 2), keepdims=True)
    return np.asarray(weight * x / np.sqrt(mean_square + epsilon) * logistic(gate))


RMS_NORM = OpSpec(
    name="rms_norm",
    formula="weight * x / sqrt(mean(x^2) + epsilon)",
    definition=ref.rms_norm,
    cases=_rms_cases,
    tokens=("x",),
    variants=(
        Variant("epsilon 1e-6", lambda x, weight, epsilon: ref.rms_norm(x, weight, epsilon / 10)),
        Variant("epsilon outside the root", _root_first),
        Variant("1 + weight", lambda x, weight, epsilon: ref.rms_norm(x, 1 + weight, epsilon)),
    ),
)

LAYER_NORM = OpSpec(
    name="layer_norm",
    formula="weight * (x - mean) / sqrt(var + epsilon) + bias",
    definition=ref.layer_norm,
    cases=_layer_cases,
    tokens=("x",),
    variants=(
        Variant("epsilon 1e-5", _other_epsilon),
        Variant("variance divided by n - 1", _unbiased),
        Variant("mean not taken off", _not_centred),
    ),
)

GATED_NORM = OpSpec(
    name="gated_norm",
    formula="rms_norm(x; weight) * sigmoid(gate), per head",
    definition=ref.gated_norm,
    cases=_gated_cases,
    tokens=("x", "gate"),
    variants=(
        Variant("silu gate", _silu_gate),
        Variant("gate before the norm", _gate_first),
        Variant("norm over all heads", _all_heads),
    ),
)
