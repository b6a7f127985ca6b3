"""Inputs of the conformance vectors: activations and stored rows, ordinary and extreme.

Everything comes from the raw words of PCG64 and exact arithmetic, so that the same inputs come out
on every machine and with every numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from localglm.quant import iq1, iq2, iq3, iq4, k_quants, run32
from localglm.quant.types import Family, StorageType
from localglm.quant.unpack import UNPACKERS, unpack

Array = np.ndarray[Any, np.dtype[Any]]

COLUMNS = {Family.RUN32: (32, 96, 160, 2400), Family.SUPER: (256, 768, 2560)}
FLOAT_COLUMNS = (1, 31, 33, 96, 1000)
WIDEST = 2560

LAYOUTS = {
    kind: getattr(module, kind.name)
    for kind in UNPACKERS
    for module in (iq1, iq2, iq3, iq4, k_quants, run32)
    if hasattr(module, kind.name)
}

# Bits of float16: zeros, subnormals, one, the largest, infinities, quiet and signalling NaN.
HALF_EDGES = (
    0x0000,
    0x8000,
    0x0001,
    0x8001,
    0x03FF,
    0x0400,
    0x3C00,
    0xBC00,
    0x7BFF,
    0x7C00,
    0xFC00,
    0x7E00,
    0x7C01,
)
FLOAT_EDGES = (
    0x00000000,
    0x80000000,
    0x00000001,
    0x807FFFFF,
    0x00800000,
    0x7F7FFFFF,
    0x7F800000,
    0xFF800000,
    0x7FC00001,
    0x7F800001,
)


def raw(seed: int, count: int) -> Array:
    """Return ``count`` random 64-bit words."""
    words: Array = np.random.PCG64(seed).random_raw(count)
    return words


def uniform(seed: int, *shape: int) -> Array:
    """Return float64 numbers in [0, 1)."""
    words = raw(seed, int(np.prod(shape)))
    fractions: Array = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return fractions.reshape(shape)


def bell(seed: int, *shape: int) -> Array:
    """Return float32 numbers of a bell-shaped spread in (-2, 2)."""
    four = uniform(seed, 4, *shape)
    centred: Array = ((four[0] + four[1]) + (four[2] + four[3])) - 2.0
    return centred.astype(np.float32)


def random_bytes(seed: int, *shape: int) -> Array:
    """Return random bytes."""
    count = int(np.prod(shape))
    return raw(seed, -(-count // 8)).astype("<u8").view(np.uint8)[:count].reshape(shape)


def from_bits(*bits: int) -> Array:
    """Return float32 numbers from their bits."""
    return np.array(bits, dtype=np.uint32).view(np.float32)


def activations() -> dict[str, Array]:
    """Return one float32 row of WIDEST values for each name."""
    plain = bell(1, WIDEST)
    place = np.arange(WIDEST)
    rows = {"plain": plain, "plain_2": bell(2, WIDEST)}
    rows["outliers"] = np.where(place % 97 == 5, plain * np.float32(512), plain)
    rows["zero"] = np.zeros(WIDEST, dtype=np.float32)
    rows["minus_zero"] = -rows["zero"]
    rows["subnormal"] = (raw(3, WIDEST) & np.uint64(0x807FFFFF)).astype(np.uint32).view(np.float32)
    rows["threshold_of_256"] = _threshold(256)
    rows["threshold_of_32"] = _threshold(32)
    # Scales near 2^-105: times a subnormal float16 they are subnormal in float32.
    rows["faint"] = plain * np.float32(2.0**-98)
    for name, column, bits in (
        ("inf_early", 20, (0x7F800000,)),
        ("minus_inf", 40, (0xFF800000,)),
        ("nan_late", 1500, (0x7FC00001,)),
        ("nan_and_inf", 3, (0x7F800001, 0x7F800000)),
    ):
        rows[name] = plain.copy()
        rows[name][column : column + len(bits)] = from_bits(*bits)
    rows["full"] = np.full(WIDEST, 1.5, dtype=np.float32)
    rows["full_mixed"] = np.where(raw(4, WIDEST) & np.uint64(1), 1.5, -1.5).astype(np.float32)
    rows["huge"] = plain * np.float32(2.0**127)
    rows["huge"][::64] = from_bits(0x7F7FFFFF)[0]
    # Runs with a largest value of 127 have the factor 1: every x is its own quotient, halves tie.
    rows["ties"] = (np.floor(uniform(5, WIDEST) * 253) - 126.5).astype(np.float32)
    rows["ties"][::32] = 127
    exponent = (raw(6, WIDEST) % np.uint64(180)).astype(np.int64) - 90
    rows["wide_range"] = np.ldexp(plain, exponent).astype(np.float32)
    return rows


def _threshold(run: int) -> Array:
    """Return runs whose largest value is just below, at and just above 2^-100, in turn."""
    smallest = np.float32(2.0**-100)
    row = bell(7, WIDEST) * np.float32(2.0**-102)
    peaks = [np.nextafter(smallest, np.float32(side)) for side in (0, 1)]
    for number, first in enumerate(range(0, WIDEST, run)):
        row[first + 7] = (peaks[0], smallest, peaks[1], -smallest)[number % 4]
    return row


def set_scales(kind: StorageType, blocks: Array, bits: int) -> None:
    """Write float16 bits into every scale field of structured blocks."""
    half = np.array(bits, dtype="<u2")
    for field in ("d", "m", "dmin"):
        if field in LAYOUTS[kind].names:
            blocks[field] = half.view("<f2")
    if kind is StorageType.IQ1_M:
        tops = (half >> np.array([0, 4, 8, 12], dtype=np.uint16)) << 12
        blocks["scales"] = (blocks["scales"] & 0x0FFF) | tops


def sane_rows(kind: StorageType, seed: int, rows: int, columns: int) -> Array:
    """Return structured rows of random bytes with ordinary scales (2^-11 to 2^-4, both signs)."""
    layout = LAYOUTS[kind]
    count = columns // kind.value.values
    blocks: Array = random_bytes(seed, rows, count * layout.itemsize).view(layout)
    words = raw(seed + 1, rows * count * 2).reshape(2, rows, count)
    for row in range(rows):
        for block in range(count):
            for word, field in zip(words[:, row, block], ("d", "minimum"), strict=True):
                bits = 0x1000 + int(word % np.uint64(0x1C00)) + (0x8000 if word >> 63 else 0)
                _set_one(kind, blocks[row : row + 1, block : block + 1], field, bits)
    return blocks


def _set_one(kind: StorageType, block: Array, field: str, bits: int) -> None:
    if field == "d":
        set_scales(kind, block, bits)
        return
    for name in ("m", "dmin"):
        if name in LAYOUTS[kind].names:
            block[name] = np.array(bits, dtype="<u2").view("<f2")


def extreme_blocks(kind: StorageType) -> tuple[Array, Array]:
    """Return the block with the largest and the one with the smallest sum of weights.

    Searched among blocks whose fields each repeat one byte; scales are one.
    """
    layout = LAYOUTS[kind]
    fields = [n for n in layout.names if n not in {"d", "m", "dmin"}]
    trials = random_bytes(11, 2048, len(fields))
    corners = np.array([0x00, 0x7F, 0x80, 0xFF, 0x0F, 0xF0, 0x3F, 0xC0], dtype=np.uint8)
    trials[:1024] = corners[trials[:1024] & 7]
    blocks = np.zeros((len(trials), 1), dtype=layout)
    as_bytes = blocks.view(np.uint8).reshape(len(trials), layout.itemsize)
    for column, name in enumerate(fields):
        inner, offset = layout.fields[name][:2]
        as_bytes[:, offset : offset + inner.itemsize] = trials[:, column, None]
    set_scales(kind, blocks, 0x3C00)
    parts = unpack(kind, as_bytes)
    total = (parts.factor[..., None].astype(np.int64) * parts.weight).sum(axis=(1, 2, 3))
    return blocks[total.argmax()], blocks[total.argmin()]


def stored_rows(kind: StorageType, columns: int) -> Array:
    """Return the stored rows of one case. Shapes: [rows, row bytes] uint8.

    Short rows try each edge of the scales in one block and in all; long rows have five random
    rows; both end with the two extreme ones.
    """
    if kind.family is Family.FLOAT:
        return float_rows(kind, columns)
    is_long = columns > 1000
    seed = 1000 + 10 * kind.value.ggml_id
    groups = [sane_rows(kind, seed, 5 if is_long else 2, columns)]
    for number, bits in enumerate(() if is_long else HALF_EDGES):
        row = sane_rows(kind, seed + 2, 1, columns)
        everywhere = bits & 0x7FFF < 0x7C00
        set_scales(kind, row if everywhere else row[:, number % row.shape[1]][:, None], bits)
        groups.append(row)
    count = columns // kind.value.values
    groups += [np.repeat(block[None, :], count, axis=1) for block in extreme_blocks(kind)]
    whole = np.concatenate(groups, axis=0)
    return np.ascontiguousarray(whole).view(np.uint8).reshape(len(whole), -1)


def float_rows(kind: StorageType, columns: int) -> Array:
    """Return rows of a float type: three ordinary ones, then one for each edge value."""
    edges: tuple[int, ...] = HALF_EDGES if kind is StorageType.F16 else FLOAT_EDGES
    rows = bell(31 + kind.value.ggml_id, 3 + len(edges), columns)
    if kind is StorageType.F16:
        stored = rows.astype("<f2").view("<u2")
    elif kind is StorageType.BF16:
        stored = (rows.view(np.uint32) >> 16).astype("<u2")
        edges = tuple(bits >> 16 | (bits & 1) for bits in FLOAT_EDGES)
    else:
        stored = rows.view("<u4")
    for number, bits in enumerate(edges):
        stored[3 + number, (7 * number) % columns] = bits
    return np.ascontiguousarray(stored).view(np.uint8)
