"""The CPU device as its caller meets it: memory, views, refusals."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from localglm.backends.base import Cells, Device, HyperParams, StoredMatrix
from localglm.backends.cpu.device import CpuDevice
from localglm.backends.cpu.library import choose_threads, library_path, load
from localglm.backends.cpu.results import Results
from localglm.errors import DeviceError, MemoryShortError, NumericFaultError, ShapeError
from localglm.quant.types import StorageType

NAN = np.float32(np.nan)


@pytest.fixture
def device() -> Iterator[CpuDevice]:
    made = CpuDevice(threads=1)
    yield made
    made.close()


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_it_offers_every_method_of_the_contract(device: CpuDevice) -> None:
    wanted = {n for n in dir(Device) if not n.startswith("_")}
    assert {n for n in wanted if not hasattr(device, n)} == set()
    assert device.name == "cpu"


def test_an_unknown_instruction_set_is_refused_with_those_there_are() -> None:
    with pytest.raises(DeviceError) as caught:
        CpuDevice(isa="avx9")
    assert "portable" in caught.value.why


def test_no_threads_are_refused() -> None:
    with pytest.raises(DeviceError, match="0 threads"):
        CpuDevice(threads=0)


def test_threads_default_to_physical_cores() -> None:
    assert choose_threads(None) == (psutil.cpu_count(logical=False) or psutil.cpu_count())
    assert choose_threads(3) == 3


def test_a_missing_library_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(DeviceError) as caught:
        library_path(tmp_path)
    assert "build_tools.native" in caught.value.try_
    assert library_path().is_file()


def test_a_broken_library_is_a_device_error(tmp_path: Path) -> None:
    path = tmp_path / "liblocalglm_cpu.so"
    path.write_bytes(b"not a library")
    with pytest.raises(DeviceError, match="cannot be used"):
        load(path)


def test_a_closed_device_refuses_ops() -> None:
    device = CpuDevice(threads=2)
    device.close()
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.sigmoid(zeros(3))


def test_uploads_are_copies_in_device_types(device: CpuDevice) -> None:
    host = np.arange(6, dtype=np.float64).reshape(2, 3)
    held = device.upload(host)
    host[:] = -1
    back = device.download(held)
    assert back.dtype == np.float32
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert device.download(device.upload(np.array([1, 2], np.int64))).dtype == np.int32
    with pytest.raises(ShapeError):
        device.upload(np.array(["a"]))


def test_views_share_memory_and_copies_do_not(device: CpuDevice) -> None:
    held = device.alloc((4, 6))
    device.copy(device.rows(held, 1, 3), device.upload(np.ones((2, 6))))
    assert device.download(held).sum() == 12
    assert device.download(device.reshape(held, (2, 12))).sum() == 12
    mine = device.download(held)
    mine[:] = 0
    assert device.download(held).sum() == 12


def test_memory_counts_what_is_alive(device: CpuDevice) -> None:
    before = device.memory().buffers
    held = device.alloc((100, 10), "f16")
    view = device.rows(held, 0, 1)
    assert device.memory().buffers == before + 2000
    del held
    gc.collect()
    assert device.memory().buffers == before + 2000
    del view
    gc.collect()
    assert device.memory().buffers == before


def test_weights_are_mapped_without_a_copy(device: CpuDevice, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(np.eye(4, dtype=np.float32).tobytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data = np.frombuffer(mapped, np.uint8)
    held = device.matrix(StoredMatrix("eye", (4, 4), StorageType.F32, data))
    assert held.data is data
    assert device.memory().mapped == 64
    assert device.memory().weights == 0
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert np.array_equal(device.download(device.matmul(held, x)), x)
    own = np.eye(4, dtype=np.float32).view(np.uint8)
    device.matrix(StoredMatrix("own", (4, 4), StorageType.F32, own))
    assert device.memory().weights == 64


def test_weights_that_do_not_fill_their_shape_are_refused(device: CpuDevice) -> None:
    with pytest.raises(ShapeError, match="do not fill"):
        device.matrix(StoredMatrix("w", (4, 4), StorageType.F32, np.zeros(60, np.uint8)))
    with pytest.raises(ShapeError, match="cannot be Q8_0"):
        device.matrix(StoredMatrix("w", (4, 33), StorageType.Q8_0, np.zeros(60, np.uint8)))


def test_memory_that_cannot_be_had_is_named_with_its_size(
    device: CpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "empty", refuse)
    monkeypatch.setattr(np, "zeros", refuse)
    with pytest.raises(MemoryShortError, match="4000 bytes"):
        device.alloc((10, 100))
    with pytest.raises(MemoryShortError, match="24 bytes"):
        Results().empty((2, 3))


@pytest.mark.parametrize(("value", "finite"), [(1.0, True), (np.inf, False), (np.nan, False)])
def test_is_finite_looks_at_every_value(device: CpuDevice, value: float, finite: bool) -> None:
    for place in (0, 16, 36):
        x = zeros(37)
        x[place] = value
        assert device.is_finite(x) is finite


REFUSALS: dict[str, Callable[[CpuDevice], object]] = {
    "float64": lambda d: d.sigmoid(np.zeros(3)),
    "not contiguous": lambda d: d.sigmoid(zeros(4, 4)[:, :2]),
    "empty chunk": lambda d: d.sigmoid(zeros(0, 3)),
    "weight of another width": lambda d: d.rms_norm(zeros(2, 3), zeros(4), 1e-5),
    "different shapes": lambda d: d.add(zeros(2, 3), zeros(3, 2)),
    "rows past a cache": lambda d: d.store_rows(zeros(4, 2), zeros(2, 2), 3),
    "broken pool": lambda d: d.pool_keys(zeros(5, 2), zeros(5, 2), zeros(4, 2)),
    "pools not there": lambda d: d.indexer_scores(zeros(1, 2, 3), zeros(1, 2), zeros(1, 3), 7, 4),
    "cells past a cache": lambda d: d.mla_attend(
        zeros(1, 1, 2), zeros(3, 2), d.dense_cells(1, 3), 1
    ),
    "too many experts": lambda d: d.route(zeros(1, 4), zeros(4), 5, 1.0),
    "a forced expert that is not": lambda d: d.route(
        zeros(1, 4), zeros(4), 1, 1.0, np.array([[4]])
    ),
    "rows outside": lambda d: d.rows(zeros(3), 2, 4),
    "a reshape of another size": lambda d: d.reshape(zeros(6), (4,)),
    "an unknown type": lambda d: d.alloc((3,), "f64"),
    "a foreign buffer": lambda d: d.sigmoid("x"),  # type: ignore[arg-type]
    "a foreign matrix": lambda d: d.matmul(zeros(3, 3), zeros(1, 3)),  # type: ignore[arg-type]
    "a copy into another type": lambda d: d.copy(zeros(3), np.zeros(3, np.float16)),
}


@pytest.mark.parametrize("name", sorted(REFUSALS))
def test_arrays_that_do_not_belong_together_are_refused(device: CpuDevice, name: str) -> None:
    with pytest.raises(ShapeError):
        REFUSALS[name](device)


def test_a_site_with_too_many_streams_is_refused(device: CpuDevice) -> None:
    fn = StoredMatrix("fn", (99, 9), StorageType.F32, np.zeros(99 * 9 * 4, np.uint8))
    params = HyperParams(9, 20, 1e-6, 1e-5)
    with pytest.raises(ShapeError):
        device.hyper_pre(zeros(1, 9, 1), device.matrix(fn), zeros(99), zeros(3), params)


def test_a_nan_score_is_a_fault_and_not_a_choice(device: CpuDevice) -> None:
    scores = zeros(1, 6)
    device.select_cells(scores, 23, 4, 2, select_tail=True)
    scores[0, 3] = NAN
    with pytest.raises(NumericFaultError):
        device.select_cells(scores, 23, 4, 2, select_tail=True)
    logits = zeros(1, 4)
    logits[0, 2] = NAN
    with pytest.raises(NumericFaultError):
        device.route(logits, zeros(4), 2, 1.0)


def test_ties_go_to_the_lower_pool_and_zeros_are_one_value(device: CpuDevice) -> None:
    scores = np.array([[-0.0, 0.0, 1.0, 0.0, -0.0, -1.0]], np.float32)
    cells = device.select_cells(scores, 11, 2, 3, select_tail=True)
    assert device.download(cells.index)[0].tolist() == [0, 1, 2, 3, 4, 5]
    best_last = np.ascontiguousarray(scores[:, ::-1])
    cells = device.select_cells(best_last, 11, 2, 3, select_tail=True)
    assert device.download(cells.index)[0].tolist() == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("kept", [1, 255, 1000, 2999])
def test_selection_is_the_sorted_one_for_many_pools(device: CpuDevice, kept: int) -> None:
    generator = np.random.default_rng(kept)
    scores = np.round(generator.standard_normal((3, 3000)) * 40).astype(np.float32) / 8
    cells = device.select_cells(scores, 2997, 1, kept, select_tail=True)
    for row in range(3):
        order = np.argsort(-scores[row, : 2998 + row], kind="stable")[:kept]
        got = device.download(cells.index)[row, : len(order)]
        assert got.tolist() == sorted(order.tolist())
    assert device.download(cells.count).tolist() == [min(kept, 2998 + r) for r in range(3)]


def test_a_token_without_cells_gives_nan(device: CpuDevice) -> None:
    none = Cells(np.zeros((1, 0), np.int32), np.zeros(1, np.int32))
    assert np.isnan(device.download(device.mla_attend(zeros(1, 2, 3), zeros(3, 3), none, 1))).all()


def test_a_nan_passes_through_the_clamps(device: CpuDevice) -> None:
    gate, up = zeros(2) + 1, zeros(2) + 1
    gate[0], up[1] = NAN, NAN
    assert np.isnan(device.download(device.swiglu(gate, up, 10.0))).all()
    assert not np.isnan(device.download(device.swiglu(zeros(2), zeros(2), 10.0))).any()
