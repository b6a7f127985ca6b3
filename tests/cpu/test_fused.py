"""A fused run of ops gives the bits of the run, on every instruction set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from localglm.backends.base import Buffer, FusedOps, Matrix, StoredMatrix
from localglm.backends.cpu.device import CpuDevice
from localglm.backends.cpu.library import ISA_IDS, library_path, load
from localglm.errors import ShapeError
from localglm.model import runs
from localglm.quant.types import Family, StorageType

ISAS = [name for name, number in ISA_IDS.items() if load(library_path()).lg_isa_supported(number)]
MIXED = ("Q8_0", "Q4_K", "F32", "IQ2_XXS", "Q6_K")


@dataclass
class Unfused:
    """A device that does every run op by op."""

    device: CpuDevice
    fused: FusedOps = field(default_factory=FusedOps)

    def __getattr__(self, name: str) -> object:
        return getattr(self.device, name)


@pytest.fixture(params=ISAS)
def device(request: pytest.FixtureRequest) -> Iterator[CpuDevice]:
    made = CpuDevice(threads=2, isa=request.param)
    yield made
    made.close()


def matrix(device: CpuDevice, name: str, rows: int, cols: int, seed: int = 1) -> Matrix:
    kind = StorageType[name]
    rng = np.random.default_rng(seed)
    if kind.family is Family.FLOAT:
        data = rng.standard_normal((rows, cols)).astype(np.float32).view(np.uint8)
    else:
        data = rng.integers(0, 256, (rows, kind.row_bytes(cols)), np.uint8) & np.uint8(0xBB)
    return device.matrix(StoredMatrix(name, (rows, cols), kind, data.reshape(-1)))


def values(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def same(a: Buffer, b: Buffer) -> bool:
    return np.array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32))


@pytest.mark.parametrize("tokens", [1, 3, 9])
def test_products_of_mixed_types_are_those_of_one_weight_at_a_time(
    device: CpuDevice, tokens: int
) -> None:
    weights = [matrix(device, n, 24 + 17 * i, 512, seed=i) for i, n in enumerate(MIXED)]
    x = device.upload(values(tokens, 512))
    together = runs.products(device, weights, x)
    alone = runs.products(Unfused(device), weights, x)  # type: ignore[arg-type]
    assert [a.shape for a in together] == [(tokens, w.shape[0]) for w in weights]
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))
    assert not same(together[0], runs.products(device, [weights[0]], device.upload(-x))[0])


def test_products_of_weights_of_unequal_width_are_refused(device: CpuDevice) -> None:
    weights = [matrix(device, "Q8_0", 8, 64), matrix(device, "Q8_0", 8, 96)]
    with pytest.raises(ShapeError, match="different rows"):
        device.products(weights, device.upload(values(1, 64)))


@pytest.mark.parametrize("tokens", [1, 2, 9])
@pytest.mark.parametrize("limit", [None, 0.5])
def test_a_gated_feed_forward_is_its_products_and_swiglu(
    device: CpuDevice, tokens: int, limit: float | None
) -> None:
    gate, up = matrix(device, "Q4_K", 512, 256), matrix(device, "Q8_0", 512, 256, seed=2)
    down = matrix(device, "Q6_K", 256, 512, seed=3)
    x = device.upload(values(tokens, 256))
    fused = runs.gated_ffn(device, gate, up, down, x, limit)
    unfused = runs.gated_ffn(Unfused(device), gate, up, down, x, limit)  # type: ignore[arg-type]
    swapped = runs.gated_ffn(device, up, gate, down, x, limit)
    assert same(fused, unfused)
    assert not same(fused, swapped)


def test_a_feed_forward_of_parts_that_do_not_fit_is_refused(device: CpuDevice) -> None:
    gate, down = matrix(device, "Q8_0", 64, 32), matrix(device, "Q8_0", 64, 32)
    with pytest.raises(ShapeError, match="not one feed-forward"):
        device.gated_ffn(gate, gate, down, device.upload(values(1, 32)), None)


@pytest.mark.parametrize(
    ("heads", "k", "v", "taps"), [(3, 16, 16, 4), (2, 24, 40, 3), (2, 128, 128, 4)]
)
@pytest.mark.parametrize("chunks", [(1, 1), (2, 19), (35,)])
def test_convolution_and_scan_together_are_both_in_turn(
    device: CpuDevice, heads: int, k: int, v: int, taps: int, chunks: tuple[int, ...]
) -> None:
    widths = (heads * k, heads * k, heads * v)
    filters = tuple(device.upload(values(w, taps, seed=i)) for i, w in enumerate(widths))

    def run(dev: CpuDevice | Unfused, *, flipped: bool = False) -> list[Buffer]:
        windows = tuple(device.upload(values(taps - 1, w, seed=8)) for w in widths)
        state = device.upload(values(heads, k, v, seed=9))
        outs = []
        for number, t in enumerate(chunks):
            seeds = range(10 * number, 10 * number + 3)
            raw = [device.upload(values(t, w, seed=s)) for w, s in zip(widths, seeds, strict=True)]
            decay = device.upload(-np.abs(values(t, heads, k, seed=4)))
            beta = device.upload(np.abs(values(t, heads, seed=5)))
            fed = (raw[1], raw[0], raw[2]) if flipped else tuple(raw)
            outs.append(runs.conv_scan(dev, fed, filters, windows, decay, beta, state))
        return [*outs, *windows, state]

    fused, unfused = run(device), run(Unfused(device))
    assert all(same(a, b) for a, b in zip(fused, unfused, strict=True))
    assert not same(fused[0], run(device, flipped=True)[0])
