"""exp, sigmoid, silu and half-precision conversion as section 5 of docs/design/arithmetic.md says.

The same steps as ``localglm/backends/cpu/csrc/lg_math.h``, vectorised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localglm.arrays import F32
from localglm.quant.exact import fma

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH = np.float32(-float.fromhex("0x1.62e4p-1"))
_LN2_LOW = np.float32(-1.42860677e-6)
_MAGIC = np.float32(12582912.0)  # 1.5 * 2^23: adding it leaves no bits behind the point
_LARGEST = np.float32(88.72284)
_SMALLEST = np.float32(-104)
_HORNER = tuple(
    np.float32(float.fromhex(text))
    for text in (
        "0x1.6a23d0p-10",
        "0x1.123a20p-7",
        "0x1.5558f2p-5",
        "0x1.555492p-3",
        "0x1.fffffcp-2",
        "0x1p0",
        "0x1p0",
    )
)


def exp(x: F32) -> F32:
    """Return e^x within 1.3 units in the last place. Shapes: any.

    Math: n = round(x / ln 2), r = x - n ln 2 in two fused steps, 2^n p(r) with p of degree 6;
    above 88.72284 infinity, below -104 zero, NaN stays NaN.
    """
    ordinary = (x <= _LARGEST) & (x >= _SMALLEST)
    safe = np.where(ordinary, x, np.float32(0))
    n = (safe * _LOG2_E + _MAGIC) - _MAGIC
    r = fma(n, _LN2_LOW, fma(n, _LN2_HIGH, safe))
    value = np.full_like(r, _HORNER[0])
    for coefficient in _HORNER[1:]:
        value = fma(value, r, coefficient)
    whole = n.astype(np.int32)
    half = np.trunc(n * np.float32(0.5)).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        value = (value * _power_of_two(half)) * _power_of_two(whole - half)
    value = np.where(ordinary, value, np.where(x > _LARGEST, np.float32("inf"), np.float32(0)))
    return np.where(np.isnan(x), x, value)


def _power_of_two(exponent: NDArray[np.int32]) -> F32:
    return ((exponent + 127).astype(np.uint32) << 23).view(np.float32)


def sigmoid(x: F32) -> F32:
    """Return 1 / (1 + exp(-x)). Shapes: any."""
    with np.errstate(all="ignore"):
        return np.float32(1) / (np.float32(1) + exp(-x))


def silu(x: F32) -> F32:
    """Return x / (1 + exp(-x)). Shapes: any."""
    with np.errstate(all="ignore"):
        return x / (np.float32(1) + exp(-x))


def from_half(bits: NDArray[np.uint16]) -> F32:
    """Return float16 bits as float32: exact. Shapes: any."""
    with np.errstate(invalid="ignore"):
        return bits.view(np.float16).astype(np.float32)


def to_half(x: F32) -> NDArray[np.uint16]:
    """Return float32 rounded to float16 bits, ties to even. Shapes: any.

    Overflow gives infinity; every NaN becomes the quiet NaN of its sign.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        bits = x.astype(np.float16).view(np.uint16)
    quiet = np.where(np.signbit(x), np.uint16(0xFE00), np.uint16(0x7E00))
    return np.where(np.isnan(x), quiet, bits)
