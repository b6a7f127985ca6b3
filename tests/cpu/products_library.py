"""The products of the native library through plain ctypes, and weights to feed them."""

import ctypes
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from build_tools.native import build
from localglm.quant.types import Family, StorageType

ISAS = {"portable": 0, "avx2": 1, "neon": 2, "avx512": 3}
BY_NAME = {kind.name: kind for kind in StorageType}


class Experts(ctypes.Structure):
    """lg_experts of csrc/lg_products.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("gate", "up", "down")),
        *((name, ctypes.c_int32) for name in ("gate_type", "up_type", "down_type", "has_limit")),
        *((name, ctypes.c_int64) for name in ("experts", "d", "f")),
        ("limit", ctypes.c_float),
    )


_SIGNATURES = {
    "lg_embed": "piipllplp",
    "lg_matmul": "piiipllplp",
    "lg_head_matmul": "piiiplllplp",
    "lg_expert_ffn": "piipppllp",
    "lg_quantise": "piipllpp",
    "lg_isa_supported": "i",
}
_LETTERS = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_int64}


def open_library():
    library = ctypes.CDLL(str(build()))
    for name, letters in _SIGNATURES.items():
        getattr(library, name).argtypes = [_LETTERS[c] for c in letters]
    library.lg_pool_create.argtypes = [ctypes.c_int]
    library.lg_pool_create.restype = ctypes.c_void_p
    library.lg_pool_destroy.argtypes = [ctypes.c_void_p]
    library.lg_pool_threads.argtypes = [ctypes.c_void_p]
    library.lg_row_bytes.argtypes = [ctypes.c_int, ctypes.c_int64]
    library.lg_row_bytes.restype = ctypes.c_int64
    return library


def supported(library):
    return [name for name, isa in ISAS.items() if library.lg_isa_supported(isa)]


def address(array):
    assert array.flags.c_contiguous
    return array.ctypes.data


@dataclass(frozen=True)
class Products:
    """The library on one pool with one instruction set; each method returns (code, result)."""

    library: ctypes.CDLL
    pool: int
    isa: int

    def matmul(self, kind, weights, x, *, exact=False):
        y = np.full((len(x), len(weights)), np.float32(7e7))
        code = self.library.lg_matmul(
            self.pool, self.isa, exact, kind.value.ggml_id, address(weights), len(weights),
            x.shape[1], address(x), len(x), address(y),
        )  # fmt: skip
        return code, y

    def head_matmul(self, kind, weights, x, *, exact=False):
        heads, rows = weights.shape[:2]
        y = np.full((len(x), heads, rows), np.float32(7e7))
        code = self.library.lg_head_matmul(
            self.pool, self.isa, exact, kind.value.ggml_id, address(weights), heads, rows,
            x.shape[2], address(x), len(x), address(y),
        )  # fmt: skip
        return code, y

    def embed(self, kind, weights, cols, ids):
        ids = np.asarray(ids, np.int64)
        y = np.full((len(ids), cols), np.float32(7e7))
        code = self.library.lg_embed(
            self.pool, self.isa, kind.value.ggml_id, address(weights), len(weights), cols,
            address(ids), len(ids), address(y),
        )  # fmt: skip
        return code, y

    def quantise(self, run, x):
        q = np.empty(x.shape, np.int8)
        d = np.empty((len(x), -(-x.shape[1] // run)), np.float32)
        code = self.library.lg_quantise(
            self.pool, self.isa, run, address(x), *x.shape, address(q), address(d)
        )
        return code, q, d

    def expert_ffn(self, sides, x, ids, limit, *, exact=False, present=None):
        """``sides``: (type, weights [experts, out, bytes]) of gate, up and down."""
        ids = np.asarray(ids, np.int32)
        (gate_type, gate), (up_type, up), (down_type, down) = sides
        tables = [addresses(side, present) for side in (gate, up, down)]
        described = Experts(
            *(address(table) for table in tables),
            *(kind.value.ggml_id for kind in (gate_type, up_type, down_type)),
            limit is not None,
            len(gate),
            x.shape[1],
            gate.shape[1],
            0.0 if limit is None else limit,
        )
        y = np.full((*ids.shape, x.shape[1]), np.float32(7e7))
        code = self.library.lg_expert_ffn(
            self.pool, self.isa, exact, ctypes.addressof(described), address(x), address(ids),
            *ids.shape, address(y),
        )  # fmt: skip
        return code, y


def addresses(stack, present):
    """Where each expert lies; 0 for those not ``present`` (None: all are)."""
    table = np.array([address(expert) for expert in stack], np.uint64)
    absent = [] if present is None else sorted(set(range(len(stack))) - set(present))
    table[absent] = 0
    return table


@contextmanager
def products(library, isa, threads):
    pool = library.lg_pool_create(threads)
    assert pool
    try:
        yield Products(library, pool, ISAS[isa])
    finally:
        library.lg_pool_destroy(pool)


def random_weights(kind, shape, cols, seed=0):
    """Random bits: any scale, some infinite or NaN. Float types get ordinary numbers."""
    rng = np.random.default_rng([seed, kind.value.ggml_id])
    if kind.family is Family.FLOAT:
        wide = rng.standard_normal((*shape, cols)).astype(np.float32)
        if kind is StorageType.F16:
            return wide.astype(np.float16).view(np.uint8)
        if kind is StorageType.BF16:
            return np.ascontiguousarray(wide.view(np.uint16)[..., 1::2]).view(np.uint8)
        return wide.view(np.uint8)
    return rng.integers(0, 256, (*shape, kind.row_bytes(cols)), dtype=np.uint8)


def tame_weights(kind, shape, cols, seed=0):
    """The same with every scale far below one: products stay finite and ordinary."""
    weights = random_weights(kind, shape, cols, seed)
    return weights if kind.family is Family.FLOAT else weights & np.uint8(0xBB)


def bits(array):
    """Bits of float32 numbers, every NaN the same: which NaN a sum gives is free."""
    return np.where(np.isnan(array), np.uint32(0x7FC00000), array.view(np.uint32))


def same(left, right):
    return left.shape == right.shape and bool((bits(left) == bits(right)).all())
