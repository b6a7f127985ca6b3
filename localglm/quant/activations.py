"""Eight-bit activations: section 1 of docs/design/arithmetic.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localglm.arrays import F32, I8
from localglm.errors import ShapeError
from localglm.quant.types import Family, StorageType

RUN_OF_FAMILY = {Family.RUN32: 32, Family.SUPER: 256}
_SMALLEST = np.float32(2.0**-100)
_MAGNITUDE = np.uint32(0x7FFF_FFFF)


@dataclass(frozen=True, slots=True)
class Quantised:
    """Rows of 8-bit activations: x is close to q * scale of its run.

    Shapes: q [t, n] int8; scale [t, runs] float32, NaN for a run that is not finite.
    """

    q: I8
    scale: F32


def run_length(kind: StorageType) -> int:
    """Return the values per activation scale for products with this type.

    Raises: ShapeError for float types, whose products take float activations.
    """
    run = RUN_OF_FAMILY.get(kind.family)
    if run is None:
        raise ShapeError(f"{kind.name} takes float activations", why="it is a float type")
    return run


def quantise(x: F32, run: int) -> Quantised:
    """Return the activations in runs of ``run`` values; the last run may be shorter.

    Shapes: x [t, n] float32.
    Math: a = largest magnitude of the run; scale = a / 127; q = round_half_even(x * (127 / a)).
    A run that is not finite has scale NaN, one below 2^-100 scale 0; both have q = 0.
    """
    if x.ndim != 2 or x.dtype != np.float32 or run < 1:
        raise ShapeError(f"activations of shape {x.shape}, type {x.dtype}, runs of {run}")
    tokens, columns = x.shape
    runs = -(-columns // run)
    padded = np.zeros((tokens, runs * run), dtype=np.float32)
    padded[:, :columns] = x
    pieces = padded.reshape(tokens, runs, run)
    largest = (pieces.view(np.uint32) & _MAGNITUDE).max(axis=-1).view(np.float32)
    finite = np.isfinite(largest)
    used = finite & (largest >= _SMALLEST)
    safe = np.where(used, largest, np.float32(127))
    scale = np.where(
        used, safe / np.float32(127), np.where(finite, np.float32(0), np.float32("nan"))
    )
    factor = (np.float32(127) / safe)[..., None]
    values = np.rint(np.where(used[..., None], pieces, np.float32(0)) * factor).astype(np.int8)
    return Quantised(values.reshape(tokens, -1)[:, :columns], scale.astype(np.float32))
