"""Float decode against the gguf package, bit for bit."""

import gguf
import numpy as np
import pytest

from localglm.errors import ShapeError
from localglm.quant import decode
from localglm.quant.types import Family, StorageType
from localglm.quant.unpack import UNPACKERS, unpack
from tests.quant import rows

EVERY = pytest.mark.parametrize("kind", StorageType, ids=lambda kind: kind.name)
BLOCKS = pytest.mark.parametrize("kind", rows.LAYOUTS, ids=lambda kind: kind.name)
HALF_EDGE_WORDS = "0 8000 1 8001 3ff 83ff 400 3c00 bc00 7bff fbff 7c00 fc00 7e00 fe00 7c01 fdff"
HALF_EDGES = np.array([int(word, 16) for word in HALF_EDGE_WORDS.split()], dtype=np.uint16)


def same_bits(left, right):
    return np.array_equal(left.view(np.uint32), right.view(np.uint32))


@EVERY
def test_random_bytes_decode_to_the_bits_of_the_gguf_package(kind):
    data = rows.random_rows(kind, 37, 768, kind.value.ggml_id)
    got = decode.decode_rows(kind, data)
    assert got.dtype == np.float32
    assert got.shape == (37, 768)
    assert same_bits(got, rows.oracle(kind, data))


@EVERY
def test_a_flipped_bit_of_the_stored_row_is_seen(kind):
    data = rows.sane_rows(kind, 3, 256, 5)
    expected = rows.oracle(kind, data)
    for byte in (0, kind.value.nbytes // 2, kind.value.nbytes - 1):
        changed = data.copy()
        changed[1, byte] ^= 0x11
        assert not same_bits(decode.decode_rows(kind, changed), expected)


@BLOCKS
def test_every_pair_of_edge_scales_decodes_to_the_bits_of_the_gguf_package(kind):
    first, second = np.meshgrid(HALF_EDGES, HALF_EDGES)
    columns = kind.value.values * len(HALF_EDGES)
    data = rows.with_scales(
        kind, rows.random_rows(kind, len(HALF_EDGES), columns, 3), first, second
    )
    assert same_bits(decode.decode_rows(kind, data), rows.oracle(kind, data))


@BLOCKS
def test_zero_codes_keep_the_sign_their_scale_gives(kind):
    columns = kind.value.values * 2
    for fill in (0x00, 0xFF, 0x80, 0x7F, 0x0F, 0xF0):
        data = np.full((2, kind.row_bytes(columns)), fill, dtype=np.uint8)
        data = rows.with_scales(kind, data, [[0x3C00, 0xBC00], [0, 0x8000]], [[0x8000, 0]] * 2)
        assert same_bits(decode.decode_rows(kind, data), rows.oracle(kind, data))


def test_all_half_and_brain_floats_decode_to_the_bits_of_the_gguf_package():
    data = np.arange(65536, dtype="<u2").reshape(64, 1024).view(np.uint8)
    for kind in (StorageType.F16, StorageType.BF16):
        assert same_bits(decode.decode_rows(kind, data), rows.oracle(kind, data))


def test_many_rows_decode_like_single_rows(monkeypatch):
    data = rows.random_rows(StorageType.Q4_K, 9, 512, 1)
    whole = decode.decode_rows(StorageType.Q4_K, data)
    monkeypatch.setattr(decode, "_VALUES_AT_ONCE", 1024)
    assert same_bits(decode.decode_rows(StorageType.Q4_K, data), whole)


@EVERY
def test_block_sizes_are_those_of_the_format(kind):
    values, nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind.name]]
    assert (kind.value.values, kind.value.nbytes) == (values, nbytes)
    assert gguf.GGMLQuantizationType[kind.name].value == kind.value.ggml_id
    if kind in rows.LAYOUTS:
        assert rows.LAYOUTS[kind].itemsize == nbytes


def test_every_block_type_has_an_unpacker_and_no_float_type_has_one():
    assert set(UNPACKERS) == {k for k in StorageType if k.family is not Family.FLOAT}
    assert set(UNPACKERS) == set(rows.LAYOUTS)
    with pytest.raises(ShapeError, match="F16"):
        unpack(StorageType.F16, np.zeros((1, 4), dtype=np.uint8))


@EVERY
def test_rows_that_are_not_whole_blocks_are_refused(kind):
    with pytest.raises(ShapeError, match=kind.name):
        decode.decode_rows(kind, np.zeros((2, kind.value.nbytes + 1), dtype=np.uint8))
    with pytest.raises(ShapeError, match=kind.name):
        decode.decode_rows(kind, np.zeros((2, kind.value.nbytes), dtype=np.int8))
