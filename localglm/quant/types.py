"""The 22 storage types of published files: ids, block sizes and block bytes.

Source: the GGUF format; checked against the ``gguf`` package in tests/quant.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(Enum):
    """How a type takes part in a product (docs/design/arithmetic.md)."""

    FLOAT = "float"  # float32 activations
    RUN32 = "run32"  # activations quantised per 32 values
    SUPER = "super"  # activations quantised per 256 values


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """Size facts of one storage type. ``values`` per block, ``nbytes`` per block."""

    ggml_id: int
    values: int
    nbytes: int
    family: Family


class StorageType(Enum):
    """A storage type localglm computes with; the value is its block layout."""

    F32 = BlockLayout(0, 1, 4, Family.FLOAT)
    F16 = BlockLayout(1, 1, 2, Family.FLOAT)
    BF16 = BlockLayout(30, 1, 2, Family.FLOAT)
    Q4_0 = BlockLayout(2, 32, 18, Family.RUN32)
    Q4_1 = BlockLayout(3, 32, 20, Family.RUN32)
    Q5_0 = BlockLayout(6, 32, 22, Family.RUN32)
    Q5_1 = BlockLayout(7, 32, 24, Family.RUN32)
    Q8_0 = BlockLayout(8, 32, 34, Family.RUN32)
    IQ4_NL = BlockLayout(20, 32, 18, Family.RUN32)
    Q2_K = BlockLayout(10, 256, 84, Family.SUPER)
    Q3_K = BlockLayout(11, 256, 110, Family.SUPER)
    Q4_K = BlockLayout(12, 256, 144, Family.SUPER)
    Q5_K = BlockLayout(13, 256, 176, Family.SUPER)
    Q6_K = BlockLayout(14, 256, 210, Family.SUPER)
    IQ2_XXS = BlockLayout(16, 256, 66, Family.SUPER)
    IQ2_XS = BlockLayout(17, 256, 74, Family.SUPER)
    IQ3_XXS = BlockLayout(18, 256, 98, Family.SUPER)
    IQ1_S = BlockLayout(19, 256, 50, Family.SUPER)
    IQ3_S = BlockLayout(21, 256, 110, Family.SUPER)
    IQ2_S = BlockLayout(22, 256, 82, Family.SUPER)
    IQ4_XS = BlockLayout(23, 256, 136, Family.SUPER)
    IQ1_M = BlockLayout(29, 256, 56, Family.SUPER)

    @classmethod
    def from_ggml_id(cls, ggml_id: int) -> StorageType | None:
        """Return the type with this file id, or None when localglm has no kernels for it."""
        return _BY_ID.get(ggml_id)

    @property
    def family(self) -> Family:
        """Return how the type takes part in a product."""
        return self.value.family

    def row_bytes(self, n_values: int) -> int:
        """Return the bytes of a row of ``n_values`` (a multiple of the block's values)."""
        return n_values // self.value.values * self.value.nbytes


_BY_ID = {t.value.ggml_id: t for t in StorageType}
