"""Linear attention (KDA): short convolution, decay, gated delta rule."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from localglm.backends.cpu.boundary import array_of, floats, require

if TYPE_CHECKING:
    from localglm.backends.base import Buffer
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results

    Triple = tuple[Buffer, Buffer, Buffer]


class KdaOps:
    """Everything between the projections of a KDA layer."""

    _native: Native
    _results: Results

    def short_conv(self, raw: Buffer, filters: Buffer, window: Buffer) -> Buffer:
        """silu of the causal depthwise convolution: raw [t, c], filters [c, taps] -> [t, c].

        ``window`` [taps - 1, c], oldest row first, holds the raw rows before; updated in place.
        """
        f = floats("short_conv filters", filters, None, None)
        channels, taps = f.shape
        x = floats("short_conv raw", raw, None, channels)
        require(taps > 1, "short_conv: one tap has no window", f)
        past = floats("short_conv window", window, taps - 1, channels)
        out = self._results.empty(x.shape)
        self._native.run(
            "lg_short_conv", x.ctypes.data, f.ctypes.data, past.ctypes.data, out.ctypes.data,
            len(x), channels, taps,
        )  # fmt: skip
        return out

    def kda_decay(self, raw: Buffer, bias: Buffer, rate: Buffer, lower_bound: float) -> Buffer:
        """g = lower_bound * sigmoid(rate_h * (raw + bias)): raw [t, h*k] -> [t, h, k]."""
        x, r = floats("kda_decay raw", raw, None, None), floats("kda_decay rate", rate, None)
        t, width = x.shape
        heads = len(r)
        require(width % heads == 0, "kda_decay: heads of unequal width", x, r)
        b = floats("kda_decay bias", bias, width)
        out = self._results.empty((t, heads, width // heads))
        self._native.run(
            "lg_kda_decay", x.ctypes.data, b.ctypes.data, r.ctypes.data, out.ctypes.data,
            t, heads, width // heads, lower_bound,
        )  # fmt: skip
        return out

    def kda_scan(
        self, query: Buffer, key: Buffer, value: Buffer, decay: Buffer, beta: Buffer, state: Buffer
    ) -> Buffer:
        """Run the gated delta rule token by token -> [t, h, v]; ``state`` [h, k, v] in place."""
        q = floats("kda_scan query", query, None, None, None)
        t, heads, width = q.shape
        k, g = floats("kda_scan key", key, *q.shape), floats("kda_scan decay", decay, *q.shape)
        v = floats("kda_scan value", value, t, heads, None)
        b = floats("kda_scan beta", beta, t, heads)
        memory = floats("kda_scan state", state, heads, width, v.shape[2])
        out = self._results.empty(v.shape)
        self._native.run(
            "lg_kda_scan", q.ctypes.data, k.ctypes.data, v.ctypes.data, g.ctypes.data,
            b.ctypes.data, memory.ctypes.data, out.ctypes.data, t, heads, width, v.shape[2],
        )  # fmt: skip
        return out

    def conv_scan(
        self, raw: Triple, filters: Triple, windows: Triple, decay: Buffer, beta: Buffer,
        state: Buffer,
    ) -> Buffer:  # fmt: skip
        """``short_conv`` of raw query, key and value, then ``kda_scan`` -> [t, h, v].

        raw [t, h*k]; ``windows`` and ``state`` are updated in place.
        """
        memory = floats("conv_scan state", state, None, None, None)
        heads, k, v = memory.shape
        b = floats("conv_scan beta", beta, None, heads)
        g = floats("conv_scan decay", decay, len(b), heads, k)
        taps = array_of(filters[0]).shape[-1]
        require(taps > 1, "conv_scan: one tap has no window")
        addresses = (ctypes.c_void_p * 9)()
        for i, width in enumerate((heads * k, heads * k, heads * v)):
            x = floats("conv_scan raw", raw[i], len(b), width)
            f = floats("conv_scan filters", filters[i], width, taps)
            past = floats("conv_scan window", windows[i], taps - 1, width)
            addresses[i] = x.ctypes.data
            addresses[3 + i], addresses[6 + i] = f.ctypes.data, past.ctypes.data
        out = self._results.empty((len(b), heads, v))
        at, step = ctypes.addressof(addresses), 3 * ctypes.sizeof(ctypes.c_void_p)
        self._native.run(
            "lg_conv_scan", at, at + step, at + 2 * step, g.ctypes.data, b.ctypes.data,
            memory.ctypes.data, out.ctypes.data, len(b), heads, k, v, taps,
        )  # fmt: skip
        return out
