"""The matrix product of the contract in numpy: the definition every kernel is held against.

Sections 2 to 4 of docs/design/arithmetic.md. Integer sums are taken in float64, where they are
exact; everything after them is float32 in the fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from localglm.arrays import F32, F64, U8
from localglm.errors import ShapeError
from localglm.quant import activations, decode, exact
from localglm.quant.blocks import IntegerBlocks
from localglm.quant.types import Family, StorageType
from localglm.quant.unpack import unpack

_VALUES_AT_ONCE = 1 << 19


@dataclass(frozen=True, slots=True)
class BlockTerms:
    """What a product adds up: scale * sum, then the minima, for each block, token and row.

    Shapes: all [blocks, t, rows] float32; ``sums`` and ``offsets`` are float(S) and float(M),
    ``scale`` is d_w * d_x and ``minimum`` m_w * d_x.
    """

    scale: F32
    sums: F32
    minimum: F32 | None = None
    offsets: F32 | None = None


def matmul(kind: StorageType, data: U8, x: F32) -> F32:
    """Return x times the transposed stored matrix, bit for bit as the contract says.

    Shapes: data [rows, row bytes] uint8, x [t, n] float32 -> [t, rows].
    Raises: ShapeError when the row length and n differ.
    """
    columns = decode.row_values(kind, data)
    if x.ndim != 2 or x.dtype != np.float32 or x.shape[1] != columns:
        raise ShapeError(
            f"activations of shape {x.shape} and type {x.dtype} for rows of {columns} values",
            why=f"a {kind.name} product takes float32 activations of the row length",
        )
    out = np.empty((x.shape[0], data.shape[0]), dtype=np.float32)
    for rows in _cut(data.shape[0], columns):
        for tokens in _cut(x.shape[0], columns * (1 if kind.family is not Family.FLOAT else 8)):
            out[tokens, rows] = _product(kind, data[rows], x[tokens])
    return out


def _cut(count: int, columns: int) -> Iterator[slice]:
    """Yield slices that bound the memory of one piece; results do not depend on the cutting."""
    step = min(64, max(1, _VALUES_AT_ONCE // max(1, columns)))
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def _product(kind: StorageType, data: U8, x: F32) -> F32:
    if kind.family is Family.FLOAT:
        return exact.dot32(decode.decode_rows(kind, data)[None, :, :], x[:, None, :])
    terms = block_terms(kind, data, x)
    return add_super_blocks(terms) if kind.family is Family.SUPER else add_short_blocks(terms)


def block_terms(kind: StorageType, data: U8, x: F32) -> BlockTerms:
    """Return the terms of each block, before they are added.

    Shapes: data [rows, row bytes] uint8, x [t, n] float32.
    """
    blocks = unpack(kind, data)
    quantised = activations.quantise(x, activations.run_length(kind))
    scale_x = quantised.scale.T[:, :, None]
    sums, offsets = _integer_sums(blocks, quantised)
    with np.errstate(all="ignore"):
        scale = blocks.scale.T[:, None, :] * scale_x
        if blocks.minima is None or offsets is None:
            return BlockTerms(scale, sums)
        return BlockTerms(scale, sums, blocks.minima.scale.T[:, None, :] * scale_x, offsets)


def _integer_sums(blocks: IntegerBlocks, x: activations.Quantised) -> tuple[F32, F32 | None]:
    """Return float(S) and float(M). Shapes: [blocks, t, rows]."""
    rows, count, groups, values = blocks.weight.shape
    tokens = x.q.shape[0]
    # |factor * weight| <= 4096 and |x| <= 127: float64 holds every sum exactly, in any order.
    whole = (blocks.factor[..., None] * blocks.weight).astype(np.float64)
    by_block = whole.reshape(rows, count, groups * values).transpose(1, 2, 0)
    grouped = x.q.astype(np.float64).reshape(tokens, count, groups, values)
    sums = _product_of_integers(
        grouped.reshape(tokens, count, groups * values).transpose(1, 0, 2), by_block
    )
    if blocks.minima is None:
        return sums, None
    offset = blocks.minima.offset.astype(np.float64).transpose(1, 2, 0)
    return sums, _product_of_integers(grouped.sum(axis=-1).transpose(1, 0, 2), offset)


def _product_of_integers(left: F64, right: F64) -> F32:
    # Adding +0 makes the float of a zero sum +0, as the conversion from int32 does.
    exact_sums: F64 = np.matmul(left, right) + 0.0
    return exact_sums.astype(np.float32)


def add_super_blocks(terms: BlockTerms) -> F32:
    """Return the products of super-block types: eight fma chains, block b in chain b mod 8.

    Shapes: terms [blocks, t, rows] -> [t, rows].
    """
    partials = np.zeros((exact.PARTIALS, *terms.sums.shape[1:]), dtype=np.float32)
    for first in range(0, len(terms.sums), exact.PARTIALS):
        now = np.s_[first : first + exact.PARTIALS]
        used = partials[: len(terms.sums[now])]
        used[...] = exact.fma(terms.scale[now], terms.sums[now], used)
        if terms.minimum is not None and terms.offsets is not None:
            used[...] = exact.fma(-terms.minimum[now], terms.offsets[now], used)
    return exact.add_partials(partials)


def add_short_blocks(terms: BlockTerms) -> F32:
    """Return the products of 32-value types: trees over eight blocks, run r in sum r mod 8.

    Shapes: terms [blocks, t, rows] -> [t, rows].
    """
    count, tokens, rows = terms.sums.shape
    runs = -(-count // 8)
    with np.errstate(all="ignore"):
        value = terms.scale * terms.sums
        if terms.minimum is not None and terms.offsets is not None:
            value = exact.fma(terms.minimum, terms.offsets, value)
        tree = np.zeros((runs * 8, tokens, rows), dtype=np.float32)
        tree[:count] = value
        tree = tree.reshape(runs, 8, tokens, rows)
        for _ in range(3):
            tree = tree[:, 0::2] + tree[:, 1::2]
        partials = np.zeros((exact.PARTIALS, tokens, rows), dtype=np.float32)
        for run in range(runs):
            partials[run % exact.PARTIALS] += tree[run, 0]
    return exact.add_partials(partials)
