"""Super-blocks of 256 values from a grid of -1, 0, 1 with a common shift: IQ1_S, IQ1_M.

A weight is d * (2 s + 1) * (grid + t / 8) with t = +1 or -1; in integers
d * 0.125 * (2 s + 1) * (8 grid + t), which is the same number.
"""

from __future__ import annotations

import numpy as np

from localglm.arrays import I8, U8, AnyArray
from localglm.quant import tables
from localglm.quant.blocks import IntegerBlocks, group_weights, read_half, split_bits, view_blocks

IQ1_S = np.dtype([("d", "<f2"), ("qs", "u1", 32), ("qh", "<u2", 8)])
IQ1_M = np.dtype([("qs", "u1", 32), ("qh", "u1", 16), ("scales", "<u2", 4)])


def _shifted(index: AnyArray, shift: I8) -> I8:
    """Return 8 grid + t. Shapes: index [..., 32], shift broadcastable to it -> [..., 32, 8]."""
    grid = tables.load().iq1s_grid[index] * np.int8(8)
    return grid + np.broadcast_to(shift, index.shape)[..., None]


def unpack_iq1_s(data: U8) -> IntegerBlocks:
    """Return IQ1_S rows as integers, 8 groups of 32.

    A word of qh holds four times 3 top bits of grid index, 3 bits of scale and the sign of t.
    """
    block = view_blocks(data, IQ1_S)
    word = block["qh"]
    high = (word[..., None] >> np.array([0, 3, 6, 9], dtype=np.uint16)) & np.uint16(7)
    index = block["qs"] | (high.reshape(*block.shape, 32) << 8)
    shift = np.where(word & 0x8000, np.int8(-1), np.int8(1)).repeat(4, axis=-1)
    return IntegerBlocks(
        scale=read_half(block["d"], 0.125),
        factor=((word >> 12) & 7).astype(np.int16) * np.int16(2) + np.int16(1),
        weight=group_weights(_shifted(index, shift), 8),
    )


def unpack_iq1_m(data: U8) -> IntegerBlocks:
    """Return IQ1_M rows as integers, 16 groups of 16; t belongs to eight values.

    The float16 scale is the top halves of the four words of ``scales``, lowest first; each word
    also holds four times 3 bits of sub-scale.
    """
    block = view_blocks(data, IQ1_M)
    word = block["scales"]
    top = (word & np.uint16(0xF000)) >> np.array([12, 8, 4, 0], dtype=np.uint16)
    half = np.bitwise_or.reduce(top, axis=-1).astype(np.uint16).view(np.float16)
    code = (word[..., None] >> np.array([0, 3, 6, 9], dtype=np.uint16)) & np.uint16(7)
    high = split_bits(block["qh"], bits=4, run=1)
    index = block["qs"] | ((high & 7).astype(np.uint16) << 8)
    shift = np.where(high & 8, np.int8(-1), np.int8(1))
    return IntegerBlocks(
        scale=read_half(half, 0.125),
        factor=code.reshape(*block.shape, 16).astype(np.int16) * np.int16(2) + np.int16(1),
        weight=group_weights(_shifted(index, shift), 16),
    )
