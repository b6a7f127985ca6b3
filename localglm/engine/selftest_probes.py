"""Probes of a device's arithmetic, through ops whose steps the arithmetic contract fixes.

Each compares bit for bit with float32 in numpy and answers 0 when exact; one wrong bit is enough to
fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from localglm.arrays import F32, AnyArray
from localglm.backends.base import Device

_ROWS = 512
_ABOVE_ONE = 1 + 2.0**-12
_SQUARE = 1 + 2.0**-11
"""``_ABOVE_ONE`` squared, without its last bit, which only a fused step keeps."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One property of the arithmetic; ``run`` returns 0 when the device has it."""

    name: str
    run: Callable[[Device], float]


def _same(got: AnyArray, want: AnyArray) -> float:
    exact = np.array_equal(np.asarray(got, np.float32).view(np.uint32), want.view(np.uint32))
    return 0.0 if exact else math.inf


def _spread_values() -> F32:
    generator = np.random.Generator(np.random.PCG64(20261201))
    return np.exp(generator.uniform(-8, 8, (_ROWS, 1))).astype(np.float32)


def _sum(device: Device, x: F32, y: F32) -> AnyArray:
    return device.download(device.add(device.upload(x), device.upload(y)))


def _rounding(device: Device) -> float:
    """Halves between two floats go to the even one, up and down."""
    ulp = np.float32(2.0**-23)
    x = np.array([[1, 1 + ulp, 1 + 2 * ulp, -1, -1 - ulp, 2**24, 2**24 + 2]], np.float32)
    y = np.array([[ulp / 2, ulp / 2, ulp / 2, -ulp / 2, -ulp / 2, 1, 1]], np.float32)
    return _same(_sum(device, x, y), x + y)


def _subnormals(device: Device) -> float:
    """Numbers below 2^-126 are neither read nor written as 0."""
    smallest = np.float32(2.0**-149)
    x = np.array([[smallest, 3 * smallest, 2.0**-126, -(2.0**-126)]], np.float32)
    y = np.array([[smallest, 5 * smallest, -smallest, smallest]], np.float32)
    return _same(_sum(device, x, y), x + y)


def _fused(device: Device) -> float:
    """Check that a step written as fma rounds once, so that a last bit reaches the sum."""
    rows = np.array([[[-_SQUARE], [_ABOVE_ONE]]], np.float32)
    weights, nothing = np.array([[1, _ABOVE_ONE]], np.float32), np.zeros((1, 1), np.float32)
    got = device.combine(device.upload(rows), device.upload(weights), device.upload(nothing))
    return _same(device.download(got), np.array([[2.0**-24]], np.float32))


def _apart(device: Device) -> float:
    """Check that a product written alone is rounded, never contracted into the next sum."""
    y, post = np.array([[_ABOVE_ONE]], np.float32), np.array([[_ABOVE_ONE]], np.float32)
    streams, comb = np.array([[[-_SQUARE]]], np.float32), np.ones((1, 1, 1), np.float32)
    got = device.hyper_post(*(device.upload(a) for a in (y, streams, post, comb)))
    return _same(device.download(got), np.zeros((1, 1, 1), np.float32))


def _division(device: Device) -> float:
    """x / 3 is rounded correctly, which a product with 1 / 3 is not."""
    streams = np.zeros((_ROWS, 3, 1), np.float32)
    streams[:, 0] = _spread_values()
    got = device.download(device.stream_mean(device.upload(streams)))
    return _same(got, streams[:, 0] / np.float32(3))


def _root(device: Device) -> float:
    """1 / sqrt(x) is a correct root and a correct division, no fast estimate."""
    x, weight = _spread_values(), np.ones(1, np.float32)
    epsilon = np.float32(2.0**-20)
    inverse = np.float32(1) / np.sqrt(x * x + epsilon)
    got = device.rms_norm(device.upload(x), device.upload(weight), float(epsilon))
    return _same(device.download(got), x * inverse)


PROBES = (
    Probe("rounding to nearest even", _rounding),
    Probe("subnormals kept", _subnormals),
    Probe("fma fused", _fused),
    Probe("products kept apart", _apart),
    Probe("division", _division),
    Probe("square root", _root),
)
