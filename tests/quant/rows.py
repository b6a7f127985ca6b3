"""Stored rows for the tests: random bytes, and random bytes with scales under control."""

import gguf
import numpy as np

from localglm.quant import iq1, iq2, iq3, iq4, k_quants, run32
from localglm.quant.types import StorageType
from localglm.quant.unpack import UNPACKERS

LAYOUTS = {
    kind: getattr(module, kind.name)
    for kind in UNPACKERS
    for module in (iq1, iq2, iq3, iq4, k_quants, run32)
    if hasattr(module, kind.name)
}


def oracle(kind, data):
    with np.errstate(all="ignore"):
        return gguf.quants.dequantize(data, gguf.GGMLQuantizationType(kind.value.ggml_id))


def random_rows(kind, rows, columns, seed):
    random = np.random.default_rng(seed)
    return random.integers(0, 256, (rows, kind.row_bytes(columns)), dtype=np.uint8)


def with_scales(kind, data, first, second):
    """Return the rows with float16 bits in the scale field and in the minimum field.

    Shapes: first and second broadcast to [rows, blocks].
    """
    blocks = data.copy().view(LAYOUTS[kind])
    first = np.asarray(first, dtype="<u2")
    if "d" in blocks.dtype.names:
        blocks["d"] = first.view("<f2")
    else:
        tops = (first[..., None] >> np.array([0, 4, 8, 12], dtype=np.uint16)) << 12
        blocks["scales"] = (blocks["scales"] & 0x0FFF) | tops
    for name in {"m", "dmin"} & set(blocks.dtype.names):
        blocks[name] = np.asarray(second, dtype="<u2").view("<f2")
    return blocks.view(np.uint8)


def sane_rows(kind, rows, columns, seed):
    """Return random rows with scales between 2^-11 and 2^-4 of both signs (float types: normal)."""
    random = np.random.default_rng(seed)
    if kind not in LAYOUTS:
        weight = random.standard_normal((rows, columns)).astype(np.float32)
        if kind is StorageType.F16:
            return weight.astype("<f2").view(np.uint8)
        if kind is StorageType.BF16:
            return (weight.view(np.uint32) >> 16).astype("<u2").view(np.uint8)
        return weight.view(np.uint8)
    shape = (rows, columns // kind.value.values)
    half = random.integers(0x1000, 0x2C00, (2, *shape)) | random.choice([0, 0x8000], (2, *shape))
    return with_scales(kind, random_rows(kind, rows, columns, seed + 1), half[0], half[1])
