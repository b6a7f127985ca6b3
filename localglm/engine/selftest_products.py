"""Products of every block type, bit for bit against the contract.

Tolerances of ops must forgive the rounding of activations and so hide a kernel that is a percent
off; the contract fixes every bit, so here nothing is forgiven.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from localglm.backends.base import Device
from localglm.ops.cases.random import generator, matrix, normal
from localglm.quant import product
from localglm.quant.types import Family, StorageType

_ROWS = 19
_WIDTH = 768
_TOKENS = (1, 17)


def block_products(device: Device) -> Iterator[tuple[str, float]]:
    """Yield a label and 0, or infinity where a bit is wrong, for every block type."""
    for kind in StorageType:
        if kind.family is Family.FLOAT:
            continue
        for tokens in _TOKENS:
            source = generator(f"self-test {kind.name} {tokens}")
            weight, x = matrix(source, kind, _ROWS, _WIDTH), normal(source, tokens, _WIDTH)
            want = product.matmul(kind, weight.data.reshape(_ROWS, -1), x)
            got = device.download(device.matmul(device.matrix(weight), device.upload(x)))
            same = np.array_equal(np.asarray(got, np.float32).view(np.uint32), want.view(np.uint32))
            yield f"{kind.name}, {tokens} tokens", 0.0 if same else math.inf
