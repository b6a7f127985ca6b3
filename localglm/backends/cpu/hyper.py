"""Hyper-connections: parallel residual streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.backends.base import HyperMix
from localglm.backends.cpu.boundary import floats, require, stored

if TYPE_CHECKING:
    from localglm.backends.base import Buffer, HyperParams, Matrix
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


class HyperOps:
    """Spread, collapse, write back and average the streams."""

    _native: Native
    _results: Results
    _exact: int

    def spread(self, x: Buffer, streams: int) -> Buffer:
        """Copy x [t, d] into every stream -> [t, s, d]."""
        a = floats("spread x", x, None, None)
        out = self._results.empty((len(a), streams, a.shape[1]))
        out[:] = a[:, None]
        return out

    def hyper_pre(
        self, streams: Buffer, fn: Matrix, base: Buffer, scale: Buffer, params: HyperParams
    ) -> HyperMix:
        """Collapse streams [t, s, d] for one site and compute how its output is written back."""
        s, mixes = params.streams, params.streams * (2 + params.streams)
        x = floats("hyper_pre streams", streams, None, s, None)
        t, _, d = x.shape
        held = stored(fn, 2)
        require(held.shape == (mixes, s * d), f"{held.name}: {held.shape} does not fit", x)
        require(params.rounds >= 1, f"hyper_pre: {params.rounds} rounds")
        b, c = floats("hyper_pre base", base, mixes), floats("hyper_pre scale", scale, 3)
        out, post, comb = (
            self._results.empty((t, d)),
            self._results.empty((t, s)),
            self._results.empty((t, s, s)),
        )
        self._native.run(
            "lg_hyper_pre", self._exact, held.type.value.ggml_id, held.address, x.ctypes.data,
            b.ctypes.data, c.ctypes.data, out.ctypes.data, post.ctypes.data, comb.ctypes.data,
            t, s, d, params.rounds, params.epsilon, params.norm_epsilon,
        )  # fmt: skip
        return HyperMix(out, post, comb)

    def hyper_post(self, y: Buffer, streams: Buffer, post: Buffer, comb: Buffer) -> Buffer:
        """X'[j] = post[j] * y + sum_s comb[s, j] * X[s]: y [t, d], streams [t, s, d]."""
        x = floats("hyper_post streams", streams, None, None, None)
        t, s, d = x.shape
        a, p = floats("hyper_post y", y, t, d), floats("hyper_post post", post, t, s)
        c = floats("hyper_post comb", comb, t, s, s)
        out = self._results.empty(x.shape)
        self._native.run(
            "lg_hyper_post", a.ctypes.data, x.ctypes.data, p.ctypes.data, c.ctypes.data,
            out.ctypes.data, t, s, d,
        )  # fmt: skip
        return out

    def stream_mean(self, streams: Buffer) -> Buffer:
        """Unweighted mean over the streams: [t, s, d] -> [t, d]."""
        x = floats("stream_mean streams", streams, None, None, None)
        t, s, d = x.shape
        out = self._results.empty((t, d))
        self._native.run("lg_stream_mean", x.ctypes.data, out.ctypes.data, t, s, d)
        return out
