"""Cases and mistakes of the hyper-connections.

Half of the sites have steep mixing logits: there the Sinkhorn rounds have not converged, so that
the number of rounds and the last step show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import HyperParams
from localglm.ops.cases.random import TOKENS, float_matrix, generator, matrix, normal
from localglm.ops.error import Tolerance
from localglm.ops.reference import hyper as ref
from localglm.ops.spec import Case, OpSpec, Variant
from localglm.quant.types import StorageType

if TYPE_CHECKING:
    from localglm.arrays import F64

_SHAPES = [(t, 4, 32) for t in TOKENS] + [(2, 2, 31), (3, 4, 33), (2, 4, 160), (2, 4, 512)]


def _pre(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams, *, rounds: int | None = None
) -> tuple[F64, F64, F64]:
    return ref.hyper_pre(
        streams,
        fn,
        base,
        scale,
        rounds=params.rounds if rounds is None else rounds,
        epsilon=params.epsilon,
        norm_epsilon=params.norm_epsilon,
    )


def _pre_cases() -> list[Case]:
    out = []
    for t, s, d in _SHAPES:
        out += [_pre_case(t, s, d, steep=x, rounds=20, size=1.0) for x in (False, True)]
    out.append(_pre_case(2, 4, 32, steep=True, rounds=1, size=1.0))
    out.append(_pre_case(2, 4, 32, steep=True, rounds=2, size=1.0))
    out.append(_pre_case(3, 4, 32, steep=False, rounds=20, size=1e-3))
    for t in TOKENS:
        source = generator(f"hyper q8_0 {t}")
        arguments = _pre_case(t, 4, 64, steep=False, rounds=20, size=1.0).arguments
        site = {"fn": matrix(source, StorageType.Q8_0, 24, 256)}
        out.append(Case(f"{t}x4x64 Q8_0", {**arguments, **site}))
    return out


def _pre_case(t: int, s: int, d: int, *, steep: bool, rounds: int, size: float) -> Case:
    label = f"{t}x{s}x{d} steep={steep} rounds={rounds} size={size}"
    source = generator(f"hyper_pre {label}")
    entries = s * (2 + s)
    arguments = {
        "streams": normal(source, t, s, d, scale=size),
        "fn": float_matrix(normal(source, entries, s * d, scale=(s * d) ** -0.5)),
        "base": normal(source, entries, scale=0.5),
        "scale": np.array([0.7, 0.9, 4.0 if steep else 0.3], dtype=np.float32),
        "params": HyperParams(s, rounds, 1e-6, 1e-5),
    }
    return Case(label, arguments)


def _post_cases() -> list[Case]:
    out = []
    for t, s, d in _SHAPES:
        source = generator(f"hyper_post {t} {s} {d}")
        arguments = {
            "y": normal(source, t, d),
            "streams": normal(source, t, s, d),
            "post": source.uniform(0, 2, (t, s)).astype(np.float32),
            "comb": source.uniform(0, 1, (t, s, s)).astype(np.float32),
        }
        out.append(Case(f"{t}x{s}x{d}", arguments))
    return out


def _spread_cases() -> list[Case]:
    return [
        Case(f"{t}x{s}x{d}", {"x": normal(generator(f"spread {t} {s} {d}"), t, d), "streams": s})
        for t, s, d in _SHAPES
    ]


def _mean_cases() -> list[Case]:
    return [
        Case(f"{t}x{s}x{d}", {"streams": normal(generator(f"mean {t} {s} {d}"), t, s, d)})
        for t, s, d in _SHAPES
    ]


def _one_round_short(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams
) -> tuple[F64, F64, F64]:
    return _pre(streams, fn, base, scale, params, rounds=max(1, params.rounds - 1))


def _ends_on_rows(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams
) -> tuple[F64, F64, F64]:
    u, post, comb = _pre(streams, fn, base, scale, params)
    return u, post, comb / (np.sum(comb, axis=-1, keepdims=True) + params.epsilon)


def _post_not_doubled(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams
) -> tuple[F64, F64, F64]:
    u, post, comb = _pre(streams, fn, base, scale, params)
    return u, post / 2, comb


def _norm_per_stream(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams
) -> tuple[F64, F64, F64]:
    mean_square = np.mean(streams**2, axis=-1, keepdims=True)
    level = streams / np.sqrt(mean_square + params.norm_epsilon)
    _, post, comb = _pre(level, fn, base, scale, params)
    return _pre(streams, fn, base, scale, params)[0], post, comb


def _norm_epsilon_of_mhc(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams
) -> tuple[F64, F64, F64]:
    other = HyperParams(params.streams, params.rounds, params.epsilon, params.epsilon)
    return _pre(streams, fn, base, scale, other)


def _comb_columns_first(
    streams: F64, fn: F64, base: F64, scale: F64, params: HyperParams
) -> tuple[F64, F64, F64]:
    u, post, comb = _pre(streams, fn, base, scale, params)
    return u, post, comb.swapaxes(1, 2)


def _comb_not_transposed(y: F64, streams: F64, post: F64, comb: F64) -> F64:
    return ref.hyper_post(y, streams, post, comb.swapaxes(1, 2))


def _plain_residual(y: F64, streams: F64, post: F64, comb: F64) -> F64:
    del comb
    return np.asarray(post[:, :, None] * y[:, None] + streams)


SPREAD = OpSpec(
    name="spread",
    formula="X[s] = x for every stream s",
    definition=ref.spread,
    cases=_spread_cases,
    tokens=("x",),
    variants=(Variant("shared out", lambda x, streams: ref.spread(x, streams) / streams),),
)

HYPER_PRE = OpSpec(
    name="hyper_pre",
    formula="input = sum_s pre[s] X[s]; post = 2 sigmoid(..); comb = Sinkhorn ending on columns",
    definition=_pre,
    cases=_pre_cases,
    outputs=("input", "post", "comb"),
    tokens=("streams",),
    float32=Tolerance(1e-11, 1e-5),
    variants=(
        Variant("one Sinkhorn round short", _one_round_short),
        Variant("Sinkhorn ends on rows", _ends_on_rows),
        Variant("post without the factor 2", _post_not_doubled),
        Variant("one norm per stream", _norm_per_stream),
        Variant("norm with the epsilon of mHC", _norm_epsilon_of_mhc),
        Variant("comb stored destination first", _comb_columns_first),
    ),
)

HYPER_POST = OpSpec(
    name="hyper_post",
    formula="X'[j] = post[j] y + sum_s comb[s, j] X[s]",
    definition=ref.hyper_post,
    cases=_post_cases,
    tokens=("y", "streams", "post", "comb"),
    variants=(
        Variant("comb not transposed", _comb_not_transposed),
        Variant("streams kept unmixed", _plain_residual),
    ),
)

STREAM_MEAN = OpSpec(
    name="stream_mean",
    formula="mean over s of X[s]",
    definition=ref.stream_mean,
    cases=_mean_cases,
    tokens=("streams",),
    variants=(Variant("sum", lambda streams: streams.sum(axis=1)),),
)
