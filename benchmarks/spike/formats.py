"""Test material of the order spike: random blocks, aligned planes, activations and block sums.

Weights stay in the file layout for C and are cut into aligned planes for the graphics processors.
The planes hold the same bytes; only their order differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from gguf.quants import IQ2_XXS
from numpy.typing import NDArray

U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
I8 = NDArray[np.int8]
I32 = NDArray[np.int32]
F32 = NDArray[np.float32]


class Format(Enum):
    """A storage type of the spike: (block values, block bytes)."""

    Q8_0 = (32, 34)
    Q6_K = (256, 210)
    IQ2_XXS = (256, 66)

    @property
    def values(self) -> int:
        """Return the values of one block."""
        return self.value[0]

    @property
    def nbytes(self) -> int:
        """Return the bytes of one block."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Activations:
    """A quantised batch: q [t, n], scale [t, runs], sums over 16 values [t, n / 16]."""

    q: I8
    scale: F32
    sums: I32


def random_scales(rng: np.random.Generator, shape: tuple[int, ...], *, edge: bool) -> U16:
    """Return float16 bits: ordinary weight scales, or subnormals and zeros when ``edge``."""
    if edge:
        bits = rng.integers(0, 1024, shape).astype(np.uint16)
        signed: U16 = bits | (rng.integers(0, 2, shape).astype(np.uint16) << np.uint16(15))
        return signed
    values = rng.uniform(2.0**-9, 2.0**-7, shape) * rng.choice([-1.0, 1.0], shape)
    ordinary: U16 = values.astype(np.float16).view(np.uint16)
    return ordinary


def random_weights(fmt: Format, rows: int, cols: int, seed: int, *, edge: bool = False) -> U8:
    """Return random blocks in the file layout, [rows, blocks, block bytes]."""
    rng = np.random.default_rng(seed)
    blocks = cols // fmt.values
    raw = rng.integers(0, 256, (rows, blocks, fmt.nbytes), dtype=np.uint8)
    at = 208 if fmt is Format.Q6_K else 0
    raw[..., at : at + 2] = random_scales(rng, (rows, blocks, 1), edge=edge).view(np.uint8)
    return raw


def quantise(x: F32, run: int) -> Activations:
    """Quantise rows in runs, as section 1 of the arithmetic contract says (finite input)."""
    tokens, n = x.shape
    parts = x.reshape(tokens, n // run, run)
    a = np.abs(parts).max(axis=2)
    live = a >= np.float32(2.0**-100)
    safe = np.where(live, a, np.float32(1))
    scale = np.where(live, safe / np.float32(127), np.float32(0)).astype(np.float32)
    s = np.where(live, np.float32(127) / safe, np.float32(0)).astype(np.float32)
    q = np.rint(parts * s[..., None]).astype(np.int8).reshape(tokens, n)
    return Activations(q, scale, q.reshape(tokens, n // 16, 16).sum(axis=2, dtype=np.int32))


def random_activations(
    fmt: Format, tokens: int, cols: int, seed: int, *, edge: bool = False
) -> Activations:
    """Return quantised normal activations; tiny ones when ``edge``, so that products underflow."""
    x = np.random.default_rng(seed).standard_normal((tokens, cols)).astype(np.float32)
    return quantise(x * np.float32(2.0**-98 if edge else 1.0), fmt.values)


def grid_bytes() -> U8:
    """Return the IQ2_XXS grid [256, 8] of the gguf package."""
    IQ2_XXS.init_grid()  # type: ignore[no-untyped-call]
    grid: U8 = np.asarray(IQ2_XXS.grid).reshape(256, 8).astype(np.uint8)
    return grid


def scale_bits(fmt: Format, raw: U8) -> U16:
    """Return the float16 scale bits [rows, blocks]."""
    at = 208 if fmt is Format.Q6_K else 0
    return np.ascontiguousarray(raw[..., at : at + 2]).view(np.uint16)[..., 0]


def q6_values(raw: U8) -> U8:
    """Return the 6-bit values [rows, blocks, 256] in activation order."""
    low = raw[..., :128].reshape(*raw.shape[:2], 2, 64)
    high = raw[..., 128:192].reshape(*raw.shape[:2], 2, 1, 32)
    nibbles = np.stack([low & 15, low >> 4], axis=3).reshape(*raw.shape[:2], 2, 4, 32)
    pairs = (high >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3
    values: U8 = (nibbles | (pairs << 4)).reshape(*raw.shape[:2], 256)
    return values


def iq2_values(raw: U8) -> tuple[I8, I32]:
    """Return signed grid values [rows, blocks, 256] and group factors [rows, blocks, 8]."""
    words = np.ascontiguousarray(raw[..., 2:]).view(np.uint32).reshape(*raw.shape[:2], 8, 2)
    index = np.ascontiguousarray(words[..., 0]).view(np.uint8).reshape(*raw.shape[:2], 8, 4)
    seven = (words[..., 1:] >> np.array([0, 7, 14, 21], np.uint32)) & 127
    parity = np.bitwise_count(seven) & 1
    bits = (seven | (parity.astype(np.uint32) << 7)).astype(np.uint8)
    negative = np.unpackbits(bits[..., None], axis=-1, bitorder="little").astype(bool)
    grid = grid_bytes().astype(np.int8)[index]
    factor = (2 * (words[..., 1] >> 28) + 1).astype(np.int32)
    return np.where(negative, -grid, grid).reshape(*raw.shape[:2], 256), factor


def signed_groups(fmt: Format, raw: U8) -> tuple[I8, I32]:
    """Return int8 values [rows, groups, group size] and the integer factor of each group."""
    rows = raw.shape[0]
    if fmt is Format.Q8_0:
        q = np.ascontiguousarray(raw[..., 2:]).view(np.int8)
        return q, np.ones((rows, raw.shape[1]), np.int32)
    if fmt is Format.Q6_K:
        q = (q6_values(raw).astype(np.int16) - 32).astype(np.int8)
        scales = np.ascontiguousarray(raw[..., 192:208]).view(np.int8)
        return q.reshape(rows, -1, 16), scales.astype(np.int32).reshape(rows, -1)
    values, factor = iq2_values(raw)
    return values.reshape(rows, -1, 32), factor.reshape(rows, -1)


def block_sums(fmt: Format, raw: U8, act: Activations) -> tuple[F32, I32]:
    """Return d_w * d_x and the exact integer sums S, both [tokens, rows, blocks]."""
    q, factor = signed_groups(fmt, raw)
    rows, groups, size = q.shape
    x = act.q.reshape(-1, groups, size)
    dots = np.matmul(
        q.transpose(1, 0, 2).astype(np.float32), x.transpose(1, 2, 0).astype(np.float32)
    )
    scaled = dots.astype(np.int32) * factor.T[..., None]
    sums = scaled.reshape(raw.shape[1], -1, rows, x.shape[0]).sum(axis=1, dtype=np.int32)
    if fmt is Format.IQ2_XXS:
        d_w = scale_bits(fmt, raw).view(np.float16).astype(np.float32) * np.float32(0.125)
    else:
        d_w = scale_bits(fmt, raw).view(np.float16).astype(np.float32)
    factors = d_w[None] * act.scale[:, None]
    return factors, np.ascontiguousarray(sums.transpose(2, 1, 0))


def planes(fmt: Format, raw: U8) -> list[U8]:
    """Return the aligned planes of the graphics kernels; scales come last, as float16 bits.

    Q8_0: q. Q6_K: nibbles (16 bytes a lane), bit pairs (8), group scales (2), eight lanes a block.
    IQ2_XXS: index and sign words (8 bytes a group).
    """
    scales = scale_bits(fmt, raw).view(np.uint8)
    if fmt is Format.Q8_0:
        return [np.ascontiguousarray(raw[..., 2:]), scales]
    if fmt is Format.IQ2_XXS:
        return [np.ascontiguousarray(raw[..., 2:]), scales]
    rows, blocks = raw.shape[:2]
    v = q6_values(raw).reshape(rows, blocks, 2, 2, 4, 16)  # half, low or high, lane, value
    nibbles = (v[..., 0, :, :] & 15) | ((v[..., 1, :, :] & 15) << 4)
    pairs = (v >> 4).reshape(rows, blocks, 2, 2, 4, 4, 4) << np.array([0, 2, 4, 6], np.uint8)[
        :, None
    ]
    packed = np.bitwise_or.reduce(pairs, axis=5).transpose(0, 1, 2, 4, 3, 5)
    group = raw[..., 192:208].reshape(rows, blocks, 2, 2, 4).transpose(0, 1, 2, 4, 3)
    return [np.ascontiguousarray(a) for a in (nibbles, packed, group)] + [scales]
