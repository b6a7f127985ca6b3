"""Routing: which experts, with what weight, and the sum of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import Routing
from localglm.backends.cpu.boundary import floats, require

if TYPE_CHECKING:
    from localglm.arrays import AnyArray
    from localglm.backends.base import Buffer
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


class RoutingOps:
    """The choice of experts and their sum."""

    _native: Native
    _results: Results

    def route(
        self, logits: Buffer, bias: Buffer, used: int, scale: float, forced: AnyArray | None = None
    ) -> Routing:
        """Pick the ``used`` largest of sigmoid(logits) + bias (ties: lower expert).

        Math: w = scale * P / (sum of chosen P + 1e-20), P without the bias.
        ``forced`` [t, x] replaces the choice, not the weights.
        Raises: NumericFaultError when a logit is NaN.
        """
        x = floats("route logits", logits, None, None)
        t, experts = x.shape
        b = floats("route bias", bias, experts)
        require(1 <= used <= experts, f"route: {used} experts of {experts}")
        ids, weights = np.empty((t, used), np.int32), self._results.empty((t, used))
        wanted = None if forced is None else np.ascontiguousarray(forced, np.int32)
        require(wanted is None or wanted.shape == ids.shape, "route: forced ids do not fit", ids)
        self._native.run(
            "lg_route", x.ctypes.data, b.ctypes.data,
            None if wanted is None else wanted.ctypes.data,
            ids.ctypes.data, weights.ctypes.data, t, experts, used, scale,
        )  # fmt: skip
        return Routing(ids, weights)

    def combine(self, rows: Buffer, weights: Buffer, shared: Buffer) -> Buffer:
        """Add expert rows in rank order with fma, the shared expert last -> [t, d]."""
        r = floats("combine rows", rows, None, None, None)
        t, used, d = r.shape
        w, s = floats("combine weights", weights, t, used), floats("combine shared", shared, t, d)
        out = self._results.empty((t, d))
        self._native.run(
            "lg_combine", r.ctypes.data, w.ctypes.data, s.ctypes.data, out.ctypes.data, t, used, d
        )
        return out
