"""Tensor type ids of the GGUF format: names for messages, block sizes for byte ranges.

``quant.types.StorageType`` lists what localglm computes with. This table adds the ids it only has
to recognise, so that a refused tensor can be named and an ignored one can still be measured.

Source: the GGUF format; checked against the ``gguf`` package in tests/gguf.
"""

from __future__ import annotations

from dataclasses import dataclass

from localglm.quant.types import StorageType


@dataclass(frozen=True, slots=True)
class TensorType:
    """One tensor type id: its name, values per block and bytes per block."""

    name: str
    values: int
    nbytes: int


_RECOGNISED = {
    9: TensorType("Q8_1", 32, 40),
    15: TensorType("Q8_K", 256, 292),
    24: TensorType("I8", 1, 1),
    25: TensorType("I16", 1, 2),
    26: TensorType("I32", 1, 4),
    27: TensorType("I64", 1, 8),
    28: TensorType("F64", 1, 8),
    34: TensorType("TQ1_0", 256, 54),
    35: TensorType("TQ2_0", 256, 66),
    39: TensorType("MXFP4", 32, 17),
    40: TensorType("NVFP4", 64, 36),
    41: TensorType("Q1_0", 128, 18),
}


def tensor_type(type_id: int) -> TensorType | None:
    """Return the facts of a type id, or None when the id is unknown."""
    storage = StorageType.from_ggml_id(type_id)
    if storage is None:
        return _RECOGNISED.get(type_id)
    return TensorType(storage.name, storage.value.values, storage.value.nbytes)


def accepted_types() -> str:
    """Return the names of the types localglm computes with, for messages."""
    return " ".join(storage.name for storage in StorageType)
