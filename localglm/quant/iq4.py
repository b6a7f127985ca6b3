"""Four-bit codes into a table of 16 uneven values: IQ4_NL (32 values), IQ4_XS (256 values)."""

from __future__ import annotations

import numpy as np

from localglm.arrays import U8
from localglm.quant import tables
from localglm.quant.blocks import IntegerBlocks, group_weights, read_half, split_bits, view_blocks

IQ4_NL = np.dtype([("d", "<f2"), ("qs", "u1", 16)])
IQ4_XS = np.dtype([("d", "<f2"), ("scales_h", "<u2"), ("scales_l", "u1", 4), ("qs", "u1", 128)])


def unpack_iq4_nl(data: U8) -> IntegerBlocks:
    """Return IQ4_NL rows as integers: d * table[q]."""
    block = view_blocks(data, IQ4_NL)
    weight = tables.load().kvalues_iq4nl[split_bits(block["qs"], bits=4, run=16)]
    ones = np.ones((*block.shape, 1), dtype=np.int16)
    return IntegerBlocks(read_half(block["d"]), ones, group_weights(weight, 1))


def unpack_iq4_xs(data: U8) -> IntegerBlocks:
    """Return IQ4_XS rows as integers: d * (s - 32) * table[q], 8 groups of 32."""
    block = view_blocks(data, IQ4_XS)
    low = split_bits(block["scales_l"], bits=4, run=1).astype(np.int16)
    high = (block["scales_h"][..., None] >> np.arange(0, 16, 2, dtype=np.uint16)) & np.uint16(3)
    weight = tables.load().kvalues_iq4nl[split_bits(block["qs"], bits=4, run=16)]
    return IntegerBlocks(
        scale=read_half(block["d"]),
        factor=(low | (high.astype(np.int16) << 4)) - np.int16(32),
        weight=group_weights(weight, 8),
    )
