"""Super-blocks of 256 values with packed sub-scales: Q2_K, Q3_K, Q4_K, Q5_K, Q6_K."""

from __future__ import annotations

import numpy as np

from localglm.arrays import I16, U8, AnyArray
from localglm.quant.blocks import (
    IntegerBlocks,
    Minima,
    group_weights,
    read_half,
    split_bits,
    view_blocks,
)

Q2_K = np.dtype([("scales", "u1", 16), ("qs", "u1", 64), ("d", "<f2"), ("dmin", "<f2")])
Q3_K = np.dtype([("hmask", "u1", 32), ("qs", "u1", 64), ("scales", "u1", 12), ("d", "<f2")])
Q4_K = np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qs", "u1", 128)])
Q5_K = np.dtype(
    [("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", 128)]
)
Q6_K = np.dtype([("ql", "u1", 128), ("qh", "u1", 64), ("scales", "i1", 16), ("d", "<f2")])


def unpack_q2_k(data: U8) -> IntegerBlocks:
    """Return Q2_K rows as integers: d * sc * q - dmin * mn, 16 groups of 16."""
    block = view_blocks(data, Q2_K)
    return IntegerBlocks(
        scale=read_half(block["d"]),
        factor=(block["scales"] & 15).astype(np.int16),
        weight=group_weights(split_bits(block["qs"], bits=2, run=32), 16),
        minima=Minima(read_half(block["dmin"]), (block["scales"] >> 4).astype(np.int16)),
    )


def unpack_q3_k(data: U8) -> IntegerBlocks:
    """Return Q3_K rows as integers: d * (sc - 32) * (q - 4), 16 groups of 16."""
    block = view_blocks(data, Q3_K)
    low = split_bits(block["scales"][..., :8], bits=4, run=8)
    high = split_bits(block["scales"][..., 8:], bits=2, run=4)
    codes = split_bits(block["qs"], bits=2, run=32)
    codes |= split_bits(block["hmask"], bits=1, run=32) << 2
    return IntegerBlocks(
        scale=read_half(block["d"]),
        factor=(low | (high << 4)).astype(np.int16) - np.int16(32),
        weight=group_weights(codes.astype(np.int8) - np.int8(4), 16),
    )


def _scales_and_minima(packed: AnyArray) -> tuple[I16, I16]:
    """Return the eight 6-bit scales and eight 6-bit minima of 12 bytes.

    The first four of each are the low six bits of bytes 0-3 and 4-7; the other four have their
    low halves in bytes 8-11 and their two top bits on top of the first four.
    """
    scale, minimum, both = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([scale & 63, (both & 15) | ((scale >> 2) & 48)], axis=-1)
    minima = np.concatenate([minimum & 63, (both >> 4) | ((minimum >> 2) & 48)], axis=-1)
    return scales.astype(np.int16), minima.astype(np.int16)


def _with_minima(block: AnyArray, codes: U8) -> IntegerBlocks:
    scales, minima = _scales_and_minima(block["scales"])
    return IntegerBlocks(
        scale=read_half(block["d"]),
        factor=scales,
        weight=group_weights(codes, 8),
        minima=Minima(read_half(block["dmin"]), minima),
    )


def unpack_q4_k(data: U8) -> IntegerBlocks:
    """Return Q4_K rows as integers: d * sc * q - dmin * mn, 8 groups of 32."""
    block = view_blocks(data, Q4_K)
    return _with_minima(block, split_bits(block["qs"], bits=4, run=32))


def unpack_q5_k(data: U8) -> IntegerBlocks:
    """Return Q5_K rows as integers: d * sc * q - dmin * mn, 8 groups of 32."""
    block = view_blocks(data, Q5_K)
    codes = split_bits(block["qs"], bits=4, run=32)
    return _with_minima(block, codes | (split_bits(block["qh"], bits=1, run=32) << np.uint8(4)))


def unpack_q6_k(data: U8) -> IntegerBlocks:
    """Return Q6_K rows as integers: d * sc * (q - 32), 16 groups of 16."""
    block = view_blocks(data, Q6_K)
    codes = split_bits(block["ql"], bits=4, run=64) | (split_bits(block["qh"], bits=2, run=32) << 4)
    return IntegerBlocks(
        scale=read_half(block["d"]),
        factor=block["scales"].astype(np.int16),
        weight=group_weights(codes.astype(np.int8) - np.int8(32), 16),
    )
