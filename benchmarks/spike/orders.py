"""The candidate orders between blocks, stated in numpy bit for bit.

A: eight partials (block or run mod 8), added 0..7. B: the same partials, added by a tree.
C: one sum, block after block. D: 32 partials (block mod 32), added by a tree.
F: 32-value types only; as A, but the eight blocks of a run are chained by fma instead of a tree.
"""

from __future__ import annotations

import numpy as np
from formats import F32, I32, Format

EXACT = ("A", "B", "C", "D")


def fma(a: F32, b: F32, c: F32, *, fused: bool = True) -> F32:
    """Return a * b + c with one rounding: the double sum is rounded to odd before float32."""
    if not fused:
        return a * b + c
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where((error != 0) & (bits & 1 == 0), bits + step, bits)
    return odd.view(np.float64).astype(np.float32)


def _tree(parts: list[F32]) -> F32:
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [parts[j] + parts[j + half] for j in range(half)]
    return parts[0]


def _in_order(parts: list[F32]) -> F32:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _by_fma(factors: F32, sums: F32, count: int, *, fused: bool) -> list[F32]:
    parts = [np.zeros(factors.shape[:-1], np.float32) for _ in range(count)]
    for b in range(factors.shape[-1]):
        parts[b % count] = fma(factors[..., b], sums[..., b], parts[b % count], fused=fused)
    return parts


def _by_runs(factors: F32, sums: F32) -> list[F32]:
    p = factors * sums
    t = p.reshape(*p.shape[:-1], -1, 8)
    for _ in range(3):
        t = t[..., 0::2] + t[..., 1::2]
    runs = t[..., 0]
    parts = [np.zeros(p.shape[:-1], np.float32) for _ in range(8)]
    for r in range(runs.shape[-1]):
        parts[r % 8] = parts[r % 8] + runs[..., r]
    return parts


def _by_chains(factors: F32, sums: F32) -> list[F32]:
    shape = (*factors.shape[:-1], -1, 8)
    f, s = factors.reshape(shape), sums.reshape(shape)
    runs = np.zeros(f.shape[:-1], np.float32)
    for b in range(8):
        runs = fma(f[..., b], s[..., b], runs)
    parts = [np.zeros(factors.shape[:-1], np.float32) for _ in range(8)]
    for r in range(runs.shape[-1]):
        parts[r % 8] = parts[r % 8] + runs[..., r]
    return parts


def total(fmt: Format, order: str, factors: F32, sums: I32, *, fused: bool = True) -> F32:
    """Return the row results of one exact order from d_w * d_x and S, [..., blocks] -> [...].

    ``fused`` False rounds every product: what a device computes whose fma is not one.
    """
    s = sums.astype(np.float32)
    if order == "C":
        return _by_fma(factors, s, 1, fused=fused)[0]
    if order == "D":
        return _tree(_by_fma(factors, s, 32, fused=fused))
    if order == "F":
        return _in_order(_by_chains(factors, s))
    runs = fmt is Format.Q8_0
    eight = _by_runs(factors, s) if runs else _by_fma(factors, s, 8, fused=fused)
    return _in_order(eight) if order == "A" else _tree(eight)
