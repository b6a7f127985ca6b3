"""The elementary functions inside the kernels against the conformance vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from localglm.arrays import F32, AnyArray
from localglm.backends.cpu.device import CpuDevice

FILE = Path(__file__).parents[1] / "conformance" / "elementary.npz"
QUIET_NAN = np.uint32(0x7FC00000)


@pytest.fixture(scope="module", params=[None, "portable"])
def device(request: pytest.FixtureRequest) -> Iterator[CpuDevice]:
    made = CpuDevice(threads=1, isa=request.param)
    yield made
    made.close()


@pytest.fixture(scope="module")
def vectors() -> dict[str, AnyArray]:
    with np.load(FILE) as archive:
        return dict(archive)


def bits(x: object) -> AnyArray:
    assert isinstance(x, np.ndarray)
    return np.where(np.isnan(x), QUIET_NAN, x.view(np.uint32)).reshape(-1)


def floats(stored: AnyArray) -> F32:
    return stored.view(np.float32)


def test_sigmoid_has_the_listed_bits(device: CpuDevice, vectors: dict[str, AnyArray]) -> None:
    assert np.array_equal(bits(device.sigmoid(floats(vectors["x"]))), vectors["sigmoid"])


def test_silu_has_the_listed_bits(device: CpuDevice, vectors: dict[str, AnyArray]) -> None:
    x = floats(vectors["x"])
    got = bits(device.swiglu(x, np.ones_like(x), None))
    assert np.array_equal(got, vectors["silu"])
    assert not np.array_equal(got, vectors["sigmoid"])


def test_exp_has_the_listed_bits(device: CpuDevice, vectors: dict[str, AnyArray]) -> None:
    # A decay of x makes the state exp(x) when it was 1 and nothing is written (key and beta 0).
    # An infinite state would meet the zero key, so only finite results can be seen this way.
    finite = np.isfinite(floats(vectors["exp"]))
    x = floats(vectors["x"])[finite][None, None]
    n = x.shape[-1]
    assert n > 1000
    zero, none, state = np.zeros_like(x), np.zeros((1, 1, 1), np.float32), np.ones_like(x)
    state = state.reshape(1, n, 1)
    device.kda_scan(zero, zero, none, x, none[0], state)
    assert np.array_equal(bits(state), vectors["exp"][finite])
    with np.errstate(all="ignore"):
        assert not np.array_equal(bits(np.exp(x)), vectors["exp"][finite])


def test_fma_rounds_once(device: CpuDevice, vectors: dict[str, AnyArray]) -> None:
    # combine is fma(w1, row1, fma(1, c, +0)) + shared; a shared -0 adds nothing.
    a, b, c = (floats(vectors[f"fma_{n}"]) for n in "abc")
    plain = bits(c) != np.uint32(0x80000000)
    rows = np.stack([c, b], axis=1)[plain, :, None]
    weights = np.stack([np.ones_like(a), a], axis=1)[plain]
    shared = np.full((int(plain.sum()), 1), -0.0, np.float32)
    got = bits(device.combine(np.ascontiguousarray(rows), weights, shared))
    assert np.array_equal(got, vectors["fma"][plain])
    with np.errstate(all="ignore"):
        assert not np.array_equal(bits(a * b + c)[plain], vectors["fma"][plain])


def test_half_precision_rounds_to_even(device: CpuDevice, vectors: dict[str, AnyArray]) -> None:
    x = floats(vectors["to_half_x"])[None]
    cache = device.alloc(x.shape, "f16")
    device.store_rows(cache, x, 0)
    got = device.download(cache).view(np.uint16)[0]
    both_nan = np.isnan(got.view(np.float16)) & np.isnan(vectors["to_half"].view(np.float16))
    assert np.array_equal(got[~both_nan], vectors["to_half"][~both_nan])


def test_half_precision_widens_exactly(device: CpuDevice, vectors: dict[str, AnyArray]) -> None:
    # One cell: its weight is exp(0) = 1, so attention gives fma(1, row, +0) / 1.
    half = vectors["from_half_x"].view(np.float16)[None]
    finite = np.isfinite(half)[0] & (bits(floats(vectors["from_half"])) != np.uint32(0x80000000))
    cache = np.ascontiguousarray(half[:, finite])
    query = np.zeros((1, 1, cache.shape[1]), np.float32)
    got = bits(device.mla_attend(query, cache, device.dense_cells(1, 0), 1.0))
    assert np.array_equal(got, vectors["from_half"][finite])
