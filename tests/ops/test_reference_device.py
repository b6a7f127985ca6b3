"""The reference device: caches that really are half precision, bounded memory, clear refusals."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from localglm.backends.base import StoredMatrix
from localglm.backends.reference import weights as weights_module
from localglm.backends.reference.device import ReferenceDevice
from localglm.backends.reference.weights import DecodedPieces, ReferenceMatrix
from localglm.errors import ShapeError
from localglm.ops.cases.random import float_matrix, generator, matrix, normal
from localglm.quant.decode import decode_rows
from localglm.quant.types import StorageType


@pytest.mark.parametrize(("dtype", "kept"), [("f16", 0.0999755859375), ("f32", 0.1)])
def test_a_cache_rounds_to_its_type(dtype: str, kept: float) -> None:
    device = ReferenceDevice()
    cache = device.alloc((2, 1), dtype)
    device.store_rows(cache, device.upload(np.array([[0.1]])), 1)
    assert device.download(cache).tolist() == [[0.0], [kept]]


def test_rows_past_the_end_of_a_cache_are_refused() -> None:
    device = ReferenceDevice()
    with pytest.raises(ShapeError, match="do not fit"):
        device.store_rows(device.alloc((2, 1)), device.upload(np.ones((2, 1))), 1)


def test_views_share_memory_and_copies_do_not() -> None:
    device = ReferenceDevice()
    buffer = device.upload(np.zeros((4, 2)))
    device.copy(device.rows(buffer, 1, 2), device.upload(np.ones((1, 2))))
    taken = device.download(buffer)
    device.copy(device.reshape(buffer, (8,)), device.upload(np.full(8, 7.0)))
    assert taken.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]
    assert device.download(buffer).tolist() == [[7, 7]] * 4


def test_decoded_weights_stay_within_their_budget() -> None:
    held = matrix(generator("budget"), StorageType.Q8_0, 6, 8, 64)
    one_expert = 8 * 64 * 8
    pieces = DecodedPieces(2 * one_expert)
    wrapped = ReferenceMatrix.of(held)
    for expert in (0, 1, 2, 3, 1, 5):
        rows = held.data.reshape(6, 8, -1)[expert]
        expected = decode_rows(StorageType.Q8_0, rows)
        np.testing.assert_array_equal(pieces.whole(wrapped, expert), expected)
        assert pieces.nbytes <= 2 * one_expert


def test_a_weight_is_decoded_in_pieces_with_the_same_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = generator("pieces")
    held, x = matrix(source, StorageType.Q4_K, 9, 256), normal(source, 2, 256)
    device = ReferenceDevice()
    whole = device.download(device.matmul(device.matrix(held), device.upload(x)))
    monkeypatch.setattr(weights_module, "PIECE_BYTES", 2 * 256 * 8)
    device = ReferenceDevice(decoded_bytes=0)
    parts = device.download(device.matmul(device.matrix(held), device.upload(x)))
    np.testing.assert_allclose(parts, whole, rtol=1e-13)
    assert device.memory().weights == 0


def test_memory_falls_when_buffers_die() -> None:
    device = ReferenceDevice()
    before = device.memory().buffers
    buffer = device.alloc((100,))
    assert device.memory().buffers == before + 800
    del buffer
    gc.collect()
    assert device.memory().buffers == before


def test_bytes_that_do_not_fill_the_shape_are_refused() -> None:
    device, good = ReferenceDevice(), float_matrix(np.zeros((2, 3), dtype=np.float32))
    with pytest.raises(ShapeError, match="do not fill"):
        device.matrix(StoredMatrix(good.name, (2, 4), good.type, good.data))


def test_a_token_without_cells_is_not_a_number() -> None:
    device = ReferenceDevice()
    cells = device.select_cells(device.upload(np.zeros((1, 0))), 0, 4, 4, False)
    query, latents = device.upload(np.ones((1, 1, 2))), device.upload(np.ones((3, 2)))
    assert np.isnan(device.download(device.mla_attend(query, latents, cells, 1.0))).all()


def test_ids_outside_the_table_are_refused() -> None:
    device = ReferenceDevice()
    table = device.matrix(float_matrix(np.zeros((2, 3), dtype=np.float32)))
    for bad in (-1, 2):
        with pytest.raises(ShapeError, match="outside"):
            device.embed(table, [bad])
