"""Cases and mistakes of linear attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.cases.random import TOKENS, generator, normal
from localglm.ops.error import Tolerance
from localglm.ops.reference import kda as ref
from localglm.ops.reference.elementwise import logistic
from localglm.ops.spec import Case, OpSpec, Variant

if TYPE_CHECKING:
    from localglm.arrays import F64

LOWER_BOUND = -5.0


def _conv_cases() -> list[Case]:
    out = []
    shapes = [(t, 33, 4) for t in TOKENS] + [(5, 160, 4), (3, 512, 4), (6, 31, 2), (4, 32, 8)]
    for t, channels, taps in shapes:
        label = f"{t}x{channels} taps {taps}"
        source = generator(f"short_conv {label}")
        arguments = {
            "raw": normal(source, t, channels),
            "filters": normal(source, channels, taps),
            "window": normal(source, taps - 1, channels),
        }
        out.append(Case(label, arguments))
    return out


def _decay_cases() -> list[Case]:
    out = []
    for t, heads, width in [(1, 1, 32), (2, 3, 31), (3, 2, 33), (17, 4, 128)]:
        source = generator(f"kda_decay {t} {heads} {width}")
        arguments = {
            "raw": normal(source, t, heads * width, scale=2),
            "bias": normal(source, heads * width),
            "rate": source.uniform(0.1, 4, heads).astype(np.float32),
            "lower_bound": LOWER_BOUND,
        }
        out.append(Case(f"{t}x{heads}x{width}", arguments))
    return out


def _scan_cases() -> list[Case]:
    shapes = [(t, 2, 32) for t in TOKENS] + [(3, 1, 31), (3, 3, 33), (70, 2, 16), (5, 2, 128)]
    out = [_scan_case(t, h, k, "ordinary") for t, h, k in shapes]
    out += [_scan_case(3, 2, 16, kind) for kind in ("tiny keys", "zero keys", "no state")]
    out += [_scan_case(9, 2, 16, kind) for kind in ("strong decay", "weak decay")]
    return out


def _scan_case(t: int, heads: int, width: int, kind: str) -> Case:
    label = f"{t}x{heads}x{width} {kind}"
    source = generator(f"kda_scan {label}")
    key_scale = {"tiny keys": 2e-4, "zero keys": 0.0}.get(kind, 1.0)
    low, high = {"strong decay": (-5.0, -4.9), "weak decay": (-1e-3, 0.0)}.get(kind, (-5.0, 0.0))
    arguments = {
        "query": normal(source, t, heads, width),
        "key": normal(source, t, heads, width, scale=key_scale),
        "value": normal(source, t, heads, width),
        "decay": source.uniform(low, high, (t, heads, width)).astype(np.float32),
        "beta": source.uniform(0, 1, (t, heads)).astype(np.float32),
        "state": normal(source, heads, width, width, scale=0.0 if kind == "no state" else 1.0),
    }
    return Case(label, arguments)


@dataclass(frozen=True, slots=True)
class WrongScan:
    """The gated delta rule with one thing done differently."""

    decays_values: bool = False
    recalls_undecayed: bool = False
    reads_before_update: bool = False
    scales_query: bool = True
    has_epsilon_as_floor: bool = False
    normalises_value: bool = False
    subtracts_recalled: bool = True

    def __call__(self, query: F64, key: F64, value: F64, decay: F64, beta: F64, state: F64) -> F64:
        """Run it; ``state`` in place."""
        scale = np.sqrt(query.shape[-1]) if self.scales_query else 1.0
        query, key = self._unit(query) / scale, self._unit(key)
        value = self._unit(value) if self.normalises_value else value
        out = np.empty_like(value)
        for m, kept in enumerate(np.exp(decay)):
            before = state.copy()
            state *= kept[:, None] if self.decays_values else kept[:, :, None]
            recalled = self._read(before if self.recalls_undecayed else state, key[m])
            error = value[m] - recalled if self.subtracts_recalled else value[m]
            after = state + key[m][:, :, None] * (beta[m][:, None] * error)[:, None]
            out[m] = self._read(state if self.reads_before_update else after, query[m])
            state[...] = after
        return out

    def _unit(self, x: F64) -> F64:
        if not self.has_epsilon_as_floor:
            return ref.unit_rows(x)
        length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
        return np.asarray(x / np.maximum(length, ref.L2_EPSILON))

    @staticmethod
    def _read(state: F64, row: F64) -> F64:
        return np.asarray((state * row[:, :, None]).sum(axis=1))


def _filter_reversed(raw: F64, filters: F64, window: F64) -> F64:
    return ref.short_conv(raw, filters[:, ::-1], window)


def _no_silu(raw: F64, filters: F64, window: F64) -> F64:
    history = np.concatenate([window, raw])
    ref.short_conv(raw, filters, window)
    taps = filters.shape[1]
    return np.stack([(history[m : m + taps] * filters.T).sum(axis=0) for m in range(len(raw))])


def _window_forgotten(raw: F64, filters: F64, window: F64) -> F64:
    window[...] = 0
    return ref.short_conv(raw, filters, window)


def _window_newest_first(raw: F64, filters: F64, window: F64) -> F64:
    window[...] = window[::-1].copy()
    return ref.short_conv(raw, filters, window)


def _bias_after_rate(raw: F64, bias: F64, rate: F64, lower_bound: float) -> F64:
    scaled = rate[:, None] * raw.reshape(len(raw), len(rate), -1)
    return lower_bound * logistic(scaled + bias.reshape(len(rate), -1))


def _softplus(raw: F64, bias: F64, rate: F64, lower_bound: float) -> F64:
    del lower_bound
    shifted = (raw + bias).reshape(len(raw), len(rate), -1)
    return np.asarray(-rate[:, None] * np.log1p(np.exp(shifted)))


SHORT_CONV = OpSpec(
    name="short_conv",
    formula="silu(sum_tau filters[c, tau] raw[m - (taps - 1) + tau, c])",
    definition=ref.short_conv,
    cases=_conv_cases,
    state=("window",),
    tokens=("raw",),
    variants=(
        Variant("filter reversed", _filter_reversed),
        Variant("no silu", _no_silu),
        Variant("window forgotten between chunks", _window_forgotten),
        Variant("window newest first", _window_newest_first),
    ),
)

KDA_DECAY = OpSpec(
    name="kda_decay",
    formula="g = lower_bound sigmoid(rate_h (raw + bias))",
    definition=ref.kda_decay,
    cases=_decay_cases,
    tokens=("raw",),
    variants=(
        Variant("bias added after the rate", _bias_after_rate),
        Variant("softplus form", _softplus),
        Variant(
            "exp taken of the rate again",
            lambda raw, bias, rate, lower_bound: ref.kda_decay(
                raw, bias, np.exp(rate), lower_bound
            ),
        ),
    ),
)

KDA_SCAN = OpSpec(
    name="kda_scan",
    formula="M = diag(exp g) M; e = beta (v - M^T k); M = M + k e^T; o = M^T q",
    definition=ref.kda_scan,
    cases=_scan_cases,
    state=("state",),
    tokens=("query", "key", "value", "decay", "beta"),
    float32=Tolerance(1e-11, 1e-5),
    variants=(
        Variant("decay on the value axis", WrongScan(decays_values=True)),
        Variant("delta from the undecayed state", WrongScan(recalls_undecayed=True)),
        Variant("output before the update", WrongScan(reads_before_update=True)),
        Variant("query not scaled", WrongScan(scales_query=False)),
        Variant("L2 epsilon as a floor", WrongScan(has_epsilon_as_floor=True)),
        Variant("value normalised", WrongScan(normalises_value=True)),
        Variant("nothing recalled", WrongScan(subtracts_recalled=False)),
    ),
)
