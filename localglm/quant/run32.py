"""Blocks of 32 values with 4 or 5 bits and with 8: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.

Value i of a 4-bit block is the low half of byte i, value 16 + i the high half; the fifth bits
are one 32-bit word.
"""

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

Q4_0 = np.dtype([("d", "<f2"), ("qs", "u1", 16)])
Q4_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qs", "u1", 16)])
Q5_0 = np.dtype([("d", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16)])
Q5_1 = np.dtype([("d", "<f2"), ("m", "<f2"), ("qh", "u1", 4), ("qs", "u1", 16)])
Q8_0 = np.dtype([("d", "<f2"), ("qs", "i1", 32)])


def _ones(block: AnyArray) -> I16:
    return np.ones((*block.shape, 1), dtype=np.int16)


def _codes5(block: AnyArray) -> U8:
    high = split_bits(block["qh"], bits=1, run=1)
    return split_bits(block["qs"], bits=4, run=16) | (high << np.uint8(4))


def _centred(block: AnyArray, codes: U8, middle: int) -> IntegerBlocks:
    weight = codes.astype(np.int8) - np.int8(middle)
    return IntegerBlocks(read_half(block["d"]), _ones(block), group_weights(weight, 1))


def _with_minimum(block: AnyArray, codes: U8) -> IntegerBlocks:
    minima = Minima(read_half(block["m"]), _ones(block))
    return IntegerBlocks(read_half(block["d"]), _ones(block), group_weights(codes, 1), minima)


def unpack_q4_0(data: U8) -> IntegerBlocks:
    """Return Q4_0 rows as integers: d * (q - 8)."""
    block = view_blocks(data, Q4_0)
    return _centred(block, split_bits(block["qs"], bits=4, run=16), 8)


def unpack_q4_1(data: U8) -> IntegerBlocks:
    """Return Q4_1 rows as integers: d * q + m."""
    block = view_blocks(data, Q4_1)
    return _with_minimum(block, split_bits(block["qs"], bits=4, run=16))


def unpack_q5_0(data: U8) -> IntegerBlocks:
    """Return Q5_0 rows as integers: d * (q - 16)."""
    block = view_blocks(data, Q5_0)
    return _centred(block, _codes5(block), 16)


def unpack_q5_1(data: U8) -> IntegerBlocks:
    """Return Q5_1 rows as integers: d * q + m."""
    block = view_blocks(data, Q5_1)
    return _with_minimum(block, _codes5(block))


def unpack_q8_0(data: U8) -> IntegerBlocks:
    """Return Q8_0 rows as integers: d * q."""
    block = view_blocks(data, Q8_0)
    return IntegerBlocks(read_half(block["d"]), _ones(block), group_weights(block["qs"], 1))
