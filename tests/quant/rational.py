"""The contract for one row and one token, written with Python integers and fractions.

Slow, scalar and independent of the vectorised arithmetic of localglm.quant.
"""

from fractions import Fraction

import numpy as np

from localglm.quant.types import Family

LARGEST = Fraction(2) ** 128


def round32(value):
    """Round a fraction to the nearest float32, ties to even; a zero is +0."""
    if value == 0:
        return np.float32(0)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(magnitude / quantum) * quantum
    result = np.float32("inf") if rounded >= LARGEST else np.float32(float(rounded))
    return -result if value < 0 else result


def fma(a, b, c):
    """Return a * b + c of finite float32 numbers with one rounding."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        # The sign of an exact zero is that of the float64 sum.
        return np.float32(np.float64(a) * np.float64(b) + np.float64(c))
    return round32(exact)


def quantise(x, run):
    """Return (q, scale) of one row of finite float32 numbers."""
    q, scale = [], []
    for first in range(0, len(x), run):
        piece = x[first : first + run]
        largest = max(abs(Fraction(float(v))) for v in piece)
        if largest < Fraction(1, 2**100):
            scale.append(np.float32(0))
            q += [0] * len(piece)
            continue
        scale.append(round32(largest / 127))
        factor = Fraction(float(round32(127 / largest)))
        q += [round(Fraction(float(round32(Fraction(float(v)) * factor)))) for v in piece]
    return q, scale


def block_sums(blocks, q):
    """Return the integers S and M of every block of one row."""
    _, count, groups, values = blocks.weight.shape
    sums, offsets = [], []
    for b in range(count):
        total = least = 0
        for g in range(groups):
            first = (b * groups + g) * values
            x = [int(v) for v in q[first : first + values]]
            inner = sum(int(w) * v for w, v in zip(blocks.weight[0, b, g], x, strict=True))
            total += int(blocks.factor[0, b, g]) * inner
            if blocks.minima is not None:
                least += int(blocks.minima.offset[0, b, g]) * sum(x)
        sums.append(total)
        offsets.append(least)
    return sums, offsets


def product(kind, blocks, x):
    """Return the product of one stored row with one token, all numbers finite."""
    run = 256 if kind.family is Family.SUPER else 32
    q, scale = quantise(x, run)
    sums, offsets = block_sums(blocks, q)
    partials = [np.float32(0)] * 8
    tree = []
    for b, total in enumerate(sums):
        d = blocks.scale[0, b] * scale[b]
        m = None if blocks.minima is None else blocks.minima.scale[0, b] * scale[b]
        s, least = round32(Fraction(total)), round32(Fraction(offsets[b]))
        if kind.family is Family.SUPER:
            partials[b % 8] = fma(d, s, partials[b % 8])
            if m is not None:
                partials[b % 8] = fma(-m, least, partials[b % 8])
        else:
            tree.append(d * s if m is None else fma(m, least, d * s))
    while tree:
        p, tree = [*tree[:8], *[np.float32(0)] * 8], tree[8:]
        r = (len(sums) + 7) // 8 - (len(tree) + 7) // 8 - 1
        sum_of_run = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))
        partials[r % 8] = partials[r % 8] + sum_of_run
    total = partials[0]
    for partial in partials[1:]:
        total = total + partial
    return total


def dot32(weight, x):
    """Return section 4's sum of products of two rows of finite float32 numbers."""
    lanes = [np.float32(0)] * 32
    for i, (w, v) in enumerate(zip(weight, x, strict=True)):
        lanes[i % 32] = fma(w, v, lanes[i % 32])
    for half in (16, 8, 4, 2, 1):
        for j in range(half):
            lanes[j] = lanes[j] + lanes[j + half]
    return lanes[0]
