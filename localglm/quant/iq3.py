"""Super-blocks of 256 values drawn four at a time from a grid: IQ3_XXS, IQ3_S."""

from __future__ import annotations

import numpy as np

from localglm.arrays import U8
from localglm.quant import tables
from localglm.quant.blocks import (
    IntegerBlocks,
    apply_signs,
    group_weights,
    read_half,
    split_bits,
    view_blocks,
)

IQ3_XXS = np.dtype([("d", "<f2"), ("qs", "u1", 64), ("signs", "<u4", 8)])
IQ3_S = np.dtype(
    [("d", "<f2"), ("qs", "u1", 64), ("qh", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4)]
)


def unpack_iq3_xxs(data: U8) -> IntegerBlocks:
    """Return IQ3_XXS rows as integers, 8 groups of 32.

    The true sub-scale is d * (0.5 + s) / 2 = d * 0.25 * (2 s + 1).
    """
    block = view_blocks(data, IQ3_XXS)
    table, word = tables.load(), block["signs"]
    codes = (word[..., None] >> np.array([0, 7, 14, 21], dtype=np.uint32)) & np.uint32(127)
    signs = split_bits(table.ksigns_iq2xs[codes].reshape(*block.shape, 32), bits=1, run=1)
    magnitude = table.iq3xxs_grid[block["qs"]].reshape(*block.shape, 256)
    return IntegerBlocks(
        scale=read_half(block["d"], 0.25),
        factor=(word >> 28).astype(np.int16) * np.int16(2) + np.int16(1),
        weight=group_weights(apply_signs(magnitude, signs), 8),
    )


def unpack_iq3_s(data: U8) -> IntegerBlocks:
    """Return IQ3_S rows as integers, 8 groups of 32: 9 bits of grid index, plain sign bits."""
    block = view_blocks(data, IQ3_S)
    high = split_bits(block["qh"], bits=1, run=1).astype(np.uint16)
    grid = tables.load().iq3s_grid[block["qs"] | (high << 8)]
    signs = split_bits(block["signs"], bits=1, run=1)
    code = split_bits(block["scales"], bits=4, run=1).astype(np.int16)
    return IntegerBlocks(
        scale=read_half(block["d"]),
        factor=code * np.int16(2) + np.int16(1),
        weight=group_weights(apply_signs(grid.reshape(*block.shape, 256), signs), 8),
    )
