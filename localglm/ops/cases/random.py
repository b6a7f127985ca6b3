"""Reproducible random inputs: arrays, and weights of every storage type as raw bytes.

Block payloads are random bits, so every code path of a decoder is used; only the scale fields are
set, to values that give weights of ordinary size.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import StoredMatrix
from localglm.quant.types import Family, StorageType

if TYPE_CHECKING:
    from localglm.arrays import F16, F32, U8

TOKENS = (1, 2, 3, 17)
WIDTHS = (31, 32, 33, 160, 256, 512)

_HALF_FIELDS = {
    StorageType.Q2_K: (80, 82),
    StorageType.Q3_K: (108,),
    StorageType.Q4_K: (0, 2),
    StorageType.Q5_K: (0, 2),
    StorageType.Q6_K: (208,),
    StorageType.Q4_1: (0, 2),
    StorageType.Q5_1: (0, 2),
}
"""Byte offsets of the float16 fields of a block; offset 0 alone when not listed."""


def generator(label: str) -> np.random.Generator:
    """Return the random source that belongs to a label."""
    return np.random.default_rng(zlib.crc32(label.encode()))


def normal(source: np.random.Generator, *shape: int, scale: float = 1.0) -> F32:
    """Return normally distributed float32 values."""
    return (scale * source.normal(size=shape)).astype(np.float32)


def matrix(source: np.random.Generator, storage: StorageType, *shape: int) -> StoredMatrix:
    """Return a random weight of ``shape`` in ``storage``."""
    rows, width = int(np.prod(shape[:-1])), shape[-1]
    if storage.family is Family.FLOAT:
        data = _float_rows(source, storage, rows, width)
    else:
        data = _block_rows(source, storage, rows, width)
    return StoredMatrix(f"{storage.name} {shape}", shape, storage, data)


def float_matrix(values: F32) -> StoredMatrix:
    """Return given values as an F32 weight."""
    data = np.ascontiguousarray(values, dtype=np.float32).view(np.uint8).reshape(-1)
    return StoredMatrix(f"F32 {values.shape}", values.shape, StorageType.F32, data)


def _float_rows(source: np.random.Generator, storage: StorageType, rows: int, width: int) -> U8:
    values = normal(source, rows, width)
    if storage is StorageType.F32:
        return values.view(np.uint8).reshape(-1)
    if storage is StorageType.F16:
        return values.astype(np.float16).view(np.uint8).reshape(-1)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    return upper.view(np.uint8).reshape(-1)


def _block_rows(source: np.random.Generator, storage: StorageType, rows: int, width: int) -> U8:
    layout = storage.value
    blocks = rows * (width // layout.values)
    data = source.integers(0, 256, (blocks, layout.nbytes), dtype=np.uint8)
    sign = source.choice([-1.0, 1.0], (blocks, 2))
    half = (sign * source.uniform(0.002, 0.01, (blocks, 2))).astype(np.float16)
    if storage is StorageType.IQ1_M:
        _set_iq1_m_scale(data, half[:, 0])
    else:
        for field, offset in enumerate(_HALF_FIELDS.get(storage, (0,))):
            data[:, offset : offset + 2] = half[:, field, None].view(np.uint8)
    return data.reshape(-1)


def _set_iq1_m_scale(data: U8, half: F16) -> None:
    """Spread the scale's four nibbles over the top nibbles of the four 16-bit sub-scale words."""
    words = data[:, 48:56].view(np.uint16)
    bits = half.view(np.uint16)
    for word in range(4):
        nibble = (bits >> (4 * word)) & 0xF
        words[:, word] = (words[:, word] & 0x0FFF) | (nibble << 12)
    data[:, 48:56] = words.view(np.uint8)
