"""From a block type to its integers: the one list of block types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from localglm.arrays import U8
from localglm.errors import ShapeError
from localglm.quant import iq1, iq2, iq3, iq4, k_quants, run32
from localglm.quant.blocks import IntegerBlocks
from localglm.quant.types import StorageType

UNPACKERS: Mapping[StorageType, Callable[[U8], IntegerBlocks]] = MappingProxyType(
    {
        StorageType.Q4_0: run32.unpack_q4_0,
        StorageType.Q4_1: run32.unpack_q4_1,
        StorageType.Q5_0: run32.unpack_q5_0,
        StorageType.Q5_1: run32.unpack_q5_1,
        StorageType.Q8_0: run32.unpack_q8_0,
        StorageType.IQ4_NL: iq4.unpack_iq4_nl,
        StorageType.Q2_K: k_quants.unpack_q2_k,
        StorageType.Q3_K: k_quants.unpack_q3_k,
        StorageType.Q4_K: k_quants.unpack_q4_k,
        StorageType.Q5_K: k_quants.unpack_q5_k,
        StorageType.Q6_K: k_quants.unpack_q6_k,
        StorageType.IQ2_XXS: iq2.unpack_iq2_xxs,
        StorageType.IQ2_XS: iq2.unpack_iq2_xs,
        StorageType.IQ2_S: iq2.unpack_iq2_s,
        StorageType.IQ3_XXS: iq3.unpack_iq3_xxs,
        StorageType.IQ3_S: iq3.unpack_iq3_s,
        StorageType.IQ1_S: iq1.unpack_iq1_s,
        StorageType.IQ1_M: iq1.unpack_iq1_m,
        StorageType.IQ4_XS: iq4.unpack_iq4_xs,
    }
)


def unpack(kind: StorageType, data: U8) -> IntegerBlocks:
    """Return rows of a block type as integers and scales.

    Shapes: data [rows, row bytes] uint8.
    Raises: ShapeError for a float type or rows that are not whole blocks.
    """
    unpacker = UNPACKERS.get(kind)
    if unpacker is None:
        raise ShapeError(f"{kind.name} has no blocks to unpack", why="it is a float type")
    return unpacker(data)
