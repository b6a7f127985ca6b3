"""Float32 arithmetic with a fixed order: fused multiply-add, the 32-partial sums, the 8 partials.

This is sections 3 and 4 of docs/design/arithmetic.md in numpy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from localglm.arrays import F32, F64, AnyArray

LANES = 32
PARTIALS = 8

_EXPONENT = np.uint64(0x7FF0_0000_0000_0000)


def fma(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> F32:
    """Return a * b + c with one rounding.

    Shapes: float32, broadcast together.
    Math: the product is exact in float64; the float64 sum is rounded to odd, so that rounding it
    to float32 is the only rounding that counts (53 bits are more than 24 + 2).
    """
    with np.errstate(all="ignore"):
        product = np.multiply(_wide(a), _wide(b))
        addend = _wide(c)
        total = np.add(product, addend)
        swing = total - product
        error = (product - (total - swing)) + (addend - swing)
        return _round_to_odd(total, error).astype(np.float32)


def _wide(value: ArrayLike) -> F64:
    return np.asarray(value, dtype=np.float32).astype(np.float64)


def _round_to_odd(total: F64, error: F64) -> F64:
    """Return ``total`` moved to its odd neighbour on the side of ``error`` where it is even."""
    bits = np.atleast_1d(total).view(np.uint64)
    move = (error != 0) & ((bits & np.uint64(1)) == 0) & ((bits & _EXPONENT) != _EXPONENT)
    away = (error > 0) == (total > 0)
    odd = np.where(away, bits + np.uint64(1), bits - np.uint64(1))
    return np.where(move, odd, bits).view(np.float64).reshape(total.shape)


def dot32(weight: F32, x: F32) -> F32:
    """Return sums of products over the last axis, in the order of section 4.

    Shapes: weight [..., n], x [..., n], broadcast together -> [...].
    """
    lead = np.broadcast_shapes(weight.shape[:-1], x.shape[:-1])
    lanes = np.zeros((*lead, LANES), dtype=np.float32)
    for first in range(0, x.shape[-1], LANES):
        piece = np.s_[..., first : first + LANES]
        width = x[piece].shape[-1]
        lanes[..., :width] = fma(weight[piece], x[piece], lanes[..., :width])
    return tree32(lanes)


def sum32(x: F32) -> F32:
    """Return sums over the last axis, in the order of section 4. Shapes: [..., n] -> [...]."""
    lanes = np.zeros((*x.shape[:-1], LANES), dtype=np.float32)
    with np.errstate(all="ignore"):
        for first in range(0, x.shape[-1], LANES):
            piece = x[..., first : first + LANES]
            lanes[..., : piece.shape[-1]] += piece
    return tree32(lanes)


def tree32(lanes: F32) -> F32:
    """Return the fixed tree over the last axis. Shapes: [..., 32] -> [...]."""
    with np.errstate(all="ignore"):
        half = LANES // 2
        while half:
            lanes = lanes[..., :half] + lanes[..., half : 2 * half]
            half //= 2
    return lanes[..., 0]


def add_partials(partials: F32) -> F32:
    """Return the eight partials added in ascending order. Shapes: [8, ...] -> [...]."""
    total: AnyArray = partials[0]
    with np.errstate(all="ignore"):
        for partial in partials[1:]:
            total = total + partial
    return total
