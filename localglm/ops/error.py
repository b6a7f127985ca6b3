"""Distance between what a device computed and what the definition says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from localglm.arrays import AnyArray


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Largest normalised mean square error, and largest error of an element over max |want|."""

    nmse: float
    worst: float


@dataclass(frozen=True, slots=True)
class Error:
    """Normalised mean square error, and the worst element over max |want|, of the worst output."""

    nmse: float
    worst: float

    def over(self, tolerance: Tolerance) -> float:
        """Return how many times the error exceeds the tolerance; at most 1 passes."""
        return max(math.sqrt(self.nmse / tolerance.nmse), self.worst / tolerance.worst)


_NONE = Error(0.0, 0.0)
_INFINITE = Error(math.inf, math.inf)


def measure(
    got: Mapping[str, AnyArray],
    want: Mapping[str, AnyArray],
    sigma: Mapping[str, AnyArray] | None = None,
) -> Error:
    """Compare all outputs.

    Integers and booleans must be equal, values that are not finite must sit at the same places and
    be the same; otherwise the error is infinite. Where ``sigma`` names an output, its errors are
    counted in these units, element by element.
    """
    if got.keys() != want.keys():
        return _INFINITE
    units = sigma or {}
    errors = [_of_arrays(got[name], want[name], units.get(name)) for name in want]
    return Error(max(e.nmse for e in errors), max(e.worst for e in errors))


def _of_arrays(got: AnyArray, want: AnyArray, sigma: AnyArray | None) -> Error:
    if got.shape != want.shape:
        return _INFINITE
    if not np.issubdtype(want.dtype, np.floating):
        return _NONE if np.array_equal(got, want) else _INFINITE
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite].astype(float), want[~finite].astype(float), equal_nan=True):
        return _INFINITE
    g, w = got[finite].astype(np.float64), want[finite].astype(np.float64)
    if not np.all(np.isfinite(g)):
        return _INFINITE
    return _in_units(g - w, sigma[finite]) if sigma is not None else _relative(g, w)


def _relative(got: AnyArray, want: AnyArray) -> Error:
    largest = float(np.max(np.abs(want), initial=0.0))
    if largest == 0.0:
        return _INFINITE if np.any(got) else _NONE
    off = (got - want) / largest
    power = float(np.mean((want / largest) ** 2))
    return Error(float(np.mean(off**2)) / power, float(np.max(np.abs(off))))


def _in_units(off: AnyArray, sigma: AnyArray) -> Error:
    if np.any(off[sigma == 0]):
        return _INFINITE
    times = off[sigma > 0] / sigma[sigma > 0]
    if not times.size:
        return _NONE
    return Error(float(np.mean(times**2)), float(np.max(np.abs(times))))
