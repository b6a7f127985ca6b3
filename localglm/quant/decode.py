"""Stored rows to float32 weights."""

from __future__ import annotations

import numpy as np

from localglm.arrays import F32, U8
from localglm.errors import ShapeError
from localglm.quant.blocks import IntegerBlocks
from localglm.quant.types import Family, StorageType
from localglm.quant.unpack import unpack

_VALUES_AT_ONCE = 1 << 20


def decode_rows(kind: StorageType, data: U8) -> F32:
    """Return the weights of stored rows, bit for bit those of ``gguf.quants.dequantize``.

    Shapes: data [rows, row bytes] uint8 -> [rows, n].
    Raises: ShapeError when rows are not whole blocks.
    """
    columns = row_values(kind, data)
    if kind.family is Family.FLOAT:
        return _widen(kind, data)
    out = np.empty((data.shape[0], columns), dtype=np.float32)
    step = max(1, _VALUES_AT_ONCE // max(1, columns))
    for first in range(0, data.shape[0], step):
        out[first : first + step] = _decode_blocks(kind, unpack(kind, data[first : first + step]))
    return out


def row_values(kind: StorageType, data: U8) -> int:
    """Return how many values a stored row holds.

    Raises: ShapeError when data is not [rows, whole blocks] of bytes.
    """
    layout = kind.value
    if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] % layout.nbytes:
        raise ShapeError(
            f"{kind.name} rows of shape {data.shape} and type {data.dtype}",
            why=f"rows are uint8 and hold whole blocks of {layout.nbytes} bytes",
        )
    return int(data.shape[1]) // layout.nbytes * layout.values


def _widen(kind: StorageType, data: U8) -> F32:
    rows = np.ascontiguousarray(data)
    if kind is StorageType.F32:
        return rows.view("<f4").astype(np.float32, copy=False)
    if kind is StorageType.F16:
        with np.errstate(invalid="ignore"):
            return rows.view("<f2").astype(np.float32)
    return (rows.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _decode_blocks(kind: StorageType, blocks: IntegerBlocks) -> F32:
    rows = blocks.scale.shape[0]
    # Factor first, weight second: the order decides signs of zero and where Inf becomes NaN.
    with np.errstate(invalid="ignore"):
        sub_scale = blocks.scale[..., None] * blocks.factor.astype(np.float32)
        out: F32 = sub_scale[..., None] * blocks.weight.astype(np.float32)
        if blocks.minima is not None:
            offset = blocks.minima.offset.astype(np.float32)
            minimum = (blocks.minima.scale[..., None] * offset)[..., None]
            out = out - minimum if kind.family is Family.SUPER else out + minimum
    return out.reshape(rows, -1)
