"""What a quantised block holds, in integers: the common shape of all 19 block types.

A weight is ``scale * factor * weight``, minus ``minimum * offset`` (super-block types with minima)
or plus ``minimum`` (32-value types with minima). Files of the block types fill this in; decoding
and the product read it and know no layout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from localglm.arrays import F32, I8, I16, U8, AnyArray
from localglm.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Minima:
    """The part of a block that does not depend on its weights.

    Shapes: scale [rows, blocks] float32 (m_w of the contract); offset [rows, blocks, groups].
    """

    scale: F32
    offset: I16


@dataclass(frozen=True, slots=True)
class IntegerBlocks:
    """Rows of blocks as integers and float32 scales.

    Shapes: scale [rows, blocks] float32 (d_w of the contract); factor [rows, blocks, groups];
    weight [rows, blocks, groups, values of a group].
    """

    scale: F32
    factor: I16
    weight: I8
    minima: Minima | None = None


def view_blocks(data: U8, layout: np.dtype[np.void]) -> AnyArray:
    """Return rows of bytes as rows of structured blocks, without a copy where possible.

    Shapes: data [rows, row bytes] -> [rows, blocks].
    Raises: ShapeError when a row is not a whole number of blocks.
    """
    if data.ndim != 2 or data.shape[1] % layout.itemsize:
        raise ShapeError(
            f"rows of shape {data.shape} do not hold blocks of {layout.itemsize} bytes",
            why="a row is a whole number of blocks",
        )
    rows, row_bytes = data.shape
    return np.ascontiguousarray(data).view(layout).reshape(rows, row_bytes // layout.itemsize)


def split_bits(packed: AnyArray, *, bits: int, run: int) -> U8:
    """Return the fields of ``bits`` bits: the lowest of ``run`` bytes, then the next of those.

    Shapes: packed [..., bytes] uint8 -> [..., bytes * 8 / bits] uint8.
    """
    *lead, count = packed.shape
    shift = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    grouped = packed.reshape(*lead, count // run, 1, run)
    fields: U8 = (grouped >> shift) & np.uint8((1 << bits) - 1)
    return fields.reshape(*lead, count * 8 // bits)


def apply_signs(magnitude: U8, negative: U8) -> I8:
    """Return the magnitudes (at most 127), negated where ``negative`` is 1. Shapes: equal."""
    signed = magnitude.astype(np.int8)
    return np.where(negative == 1, -signed, signed)


def group_weights(weight: AnyArray, groups: int) -> I8:
    """Return the weights of each block cut into groups.

    Shapes: [rows, blocks, ...] -> [rows, blocks, groups, values].
    """
    rows, blocks = weight.shape[:2]
    return weight.reshape(rows, blocks, groups, -1).astype(np.int8, copy=False)


def read_half(field: AnyArray, times: float = 1.0) -> F32:
    """Return a float16 scale field as float32, times a power of two: exact."""
    with np.errstate(invalid="ignore"):
        return field.astype(np.float32) * np.float32(times)
