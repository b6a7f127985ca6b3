"""Distance between what a device computed and what the definition says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from localglm.arrays import AnyArray
    from localglm.ops.spec import Outputs, Tolerance


@dataclass(frozen=True, slots=True)
class Error:
    """Normalised mean square error, and the worst element over max |want|, of the worst output."""

    nmse: float
    worst: float

    def over(self, tolerance: Tolerance) -> float:
        """Return how many times the error exceeds the tolerance; at most 1 passes."""
        return max(math.sqrt(self.nmse / tolerance.nmse), self.worst / tolerance.worst)


_INFINITE = Error(np.inf, np.inf)


def measure(got: Outputs, want: Outputs) -> Error:
    """Compare all outputs.

    Integers and booleans must be equal, values that are not finite must sit at the same places and
    be the same; otherwise the error is infinite.
    """
    if got.keys() != want.keys():
        return _INFINITE
    errors = [_of_arrays(got[name], want[name]) for name in want]
    return Error(max(e.nmse for e in errors), max(e.worst for e in errors))


def _of_arrays(got: AnyArray, want: AnyArray) -> Error:
    if got.shape != want.shape:
        return _INFINITE
    if not np.issubdtype(want.dtype, np.floating):
        return Error(0.0, 0.0) if np.array_equal(got, want) else _INFINITE
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite].astype(float), want[~finite].astype(float), equal_nan=True):
        return _INFINITE
    g, w = got[finite].astype(np.float64), want[finite].astype(np.float64)
    if not np.all(np.isfinite(g)):
        return _INFINITE
    largest = float(np.max(np.abs(w), initial=0.0))
    if largest == 0.0:
        return Error(0.0, 0.0) if not np.any(g) else _INFINITE
    off = (g - w) / largest
    power = float(np.mean((w / largest) ** 2))
    return Error(float(np.mean(off**2)) / power, float(np.max(np.abs(off))))
