"""Super-blocks of 256 values drawn eight at a time from a grid: IQ2_XXS, IQ2_XS, IQ2_S.

The true sub-scale is d * (0.5 + s) / 4; here it is d * 0.125 * (2 s + 1), the same number.
"""

from __future__ import annotations

import numpy as np

from localglm.arrays import F32, I16, U8, AnyArray
from localglm.quant import tables
from localglm.quant.blocks import (
    IntegerBlocks,
    apply_signs,
    group_weights,
    read_half,
    split_bits,
    view_blocks,
)

IQ2_XXS = np.dtype([("d", "<f2"), ("group", [("grid", "u1", 4), ("signs", "<u4")], 8)])
IQ2_XS = np.dtype([("d", "<f2"), ("qs", "<u2", 32), ("scales", "u1", 8)])
IQ2_S = np.dtype(
    [("d", "<f2"), ("qs", "u1", 32), ("signs", "u1", 32), ("qh", "u1", 8), ("scales", "u1", 8)]
)


def _scale(block: AnyArray) -> F32:
    return read_half(block["d"], 0.125)


def _factor(code: AnyArray) -> I16:
    return code.astype(np.int16) * np.int16(2) + np.int16(1)


def _signed(magnitude: U8, sign_bytes: AnyArray) -> AnyArray:
    """Return grid values with their signs. Shapes: [..., 32, 8], [..., 32] -> [..., 256]."""
    flat = magnitude.reshape(*magnitude.shape[:-2], 256)
    return apply_signs(flat, split_bits(sign_bytes, bits=1, run=1))


def unpack_iq2_xxs(data: U8) -> IntegerBlocks:
    """Return IQ2_XXS rows as integers, 8 groups of 32.

    A group is four grid indices and one word: four times 7 bits of sign code, then the scale.
    """
    block = view_blocks(data, IQ2_XXS)
    table, group = tables.load(), block["group"]
    shift = np.array([0, 7, 14, 21], dtype=np.uint32)
    codes = (group["signs"][..., None] >> shift) & np.uint32(127)
    magnitude = table.iq2xxs_grid[group["grid"].reshape(*block.shape, 32)]
    signs = table.ksigns_iq2xs[codes.reshape(*block.shape, 32)]
    return IntegerBlocks(
        scale=_scale(block),
        factor=_factor(group["signs"] >> 28),
        weight=group_weights(_signed(magnitude, signs), 8),
    )


def unpack_iq2_xs(data: U8) -> IntegerBlocks:
    """Return IQ2_XS rows as integers, 16 groups of 16: 9 bits of grid index, 7 of sign code."""
    block = view_blocks(data, IQ2_XS)
    table = tables.load()
    magnitude = table.iq2xs_grid[block["qs"] & 511]
    return IntegerBlocks(
        scale=_scale(block),
        factor=_factor(split_bits(block["scales"], bits=4, run=1)),
        weight=group_weights(_signed(magnitude, table.ksigns_iq2xs[block["qs"] >> 9]), 16),
    )


def unpack_iq2_s(data: U8) -> IntegerBlocks:
    """Return IQ2_S rows as integers, 16 groups of 16: 10 bits of grid index, plain sign bits."""
    block = view_blocks(data, IQ2_S)
    high = split_bits(block["qh"], bits=2, run=1).astype(np.uint16)
    magnitude = tables.load().iq2s_grid[block["qs"] | (high << 8)]
    return IntegerBlocks(
        scale=_scale(block),
        factor=_factor(split_bits(block["scales"], bits=4, run=1)),
        weight=group_weights(_signed(magnitude, block["signs"]), 16),
    )
