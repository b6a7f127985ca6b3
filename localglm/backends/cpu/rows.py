"""Ops on rows and elements: norms, gates, sums, and rows written to caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.cpu.boundary import cache_rows, floats, is_half, require, whole_floats

if TYPE_CHECKING:
    from localglm.backends.base import Buffer
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


class RowOps:
    """Element-wise ops and norms over the last axis."""

    _native: Native
    _results: Results

    def swiglu(self, gate: Buffer, up: Buffer, limit: float | None) -> Buffer:
        """silu(min(gate, limit)) * clip(up, -limit, limit), element by element."""
        g = whole_floats("swiglu gate", gate)
        u = whole_floats("swiglu up", up, g)
        out = self._results.empty(g.shape)
        self._native.run(
            "lg_swiglu", g.ctypes.data, u.ctypes.data, out.ctypes.data, g.size,
            limit is not None, limit or 0.0,
        )  # fmt: skip
        return out

    def rms_norm(self, x: Buffer, weight: Buffer, epsilon: float) -> Buffer:
        """weight * x / sqrt(mean(x^2) + epsilon) over the last axis."""
        a = whole_floats("rms_norm x", x)
        n = a.shape[-1]
        w = floats("rms_norm weight", weight, n)
        out = self._results.empty(a.shape)
        self._native.run(
            "lg_rms_norm", a.ctypes.data, w.ctypes.data, out.ctypes.data, a.size // n, n, epsilon
        )
        return out

    def layer_norm(self, x: Buffer, weight: Buffer, bias: Buffer, epsilon: float) -> Buffer:
        """weight * (x - mean) / sqrt(var + epsilon) + bias over the last axis."""
        a = whole_floats("layer_norm x", x)
        n = a.shape[-1]
        w, b = floats("layer_norm weight", weight, n), floats("layer_norm bias", bias, n)
        out = self._results.empty(a.shape)
        self._native.run(
            "lg_layer_norm", a.ctypes.data, w.ctypes.data, b.ctypes.data, out.ctypes.data,
            a.size // n, n, epsilon,
        )  # fmt: skip
        return out

    def gated_norm(self, x: Buffer, weight: Buffer, gate: Buffer, epsilon: float) -> Buffer:
        """rms_norm(x; weight) * sigmoid(gate) over the last axis."""
        a = whole_floats("gated_norm x", x)
        n = a.shape[-1]
        w, g = floats("gated_norm weight", weight, n), whole_floats("gated_norm gate", gate, a)
        out = self._results.empty(a.shape)
        self._native.run(
            "lg_gated_norm", a.ctypes.data, w.ctypes.data, g.ctypes.data, out.ctypes.data,
            a.size // n, n, epsilon,
        )  # fmt: skip
        return out

    def add(self, x: Buffer, y: Buffer) -> Buffer:
        """x + y, same shapes."""
        a = whole_floats("add x", x)
        b = whole_floats("add y", y, a)
        out = self._results.empty(a.shape)
        self._native.run("lg_add", a.ctypes.data, b.ctypes.data, out.ctypes.data, a.size)
        return out

    def sigmoid(self, x: Buffer) -> Buffer:
        """Logistic function, element by element."""
        a = whole_floats("sigmoid x", x)
        out = self._results.empty(a.shape)
        self._native.run("lg_sigmoid_all", a.ctypes.data, out.ctypes.data, a.size)
        return out

    def concat(self, x: Buffer, y: Buffer) -> Buffer:
        """Join [t, a] and [t, b] on the last axis -> [t, a + b]."""
        a = floats("concat x", x, None, None)
        b = floats("concat y", y, len(a), None)
        width = a.shape[1]
        out = self._results.empty((len(a), width + b.shape[1]))
        out[:, :width], out[:, width:] = a, b
        return out

    def store_rows(self, cache: Buffer, rows: Buffer, start: int) -> None:
        """Write rows [t, c] into cache [capacity, c] from row ``start``, in the cache's type."""
        new = floats("store_rows rows", rows, None, None)
        target = cache_rows("store_rows cache", cache, new.shape[1])
        stop = start + len(new)
        require(start >= 0 and stop <= len(target), f"store_rows: from row {start}", target, new)
        place = target[start:stop]
        if is_half(target):
            self._native.run("lg_store_half", new.ctypes.data, place.ctypes.data, *new.shape)
        else:
            np.copyto(place, new)
