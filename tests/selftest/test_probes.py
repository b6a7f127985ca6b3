"""Each probe of the arithmetic, and the known logits, see the one property they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from localglm.backends.cpu.device import CpuDevice
from localglm.engine.selftest_model import IDS, KNOWN, logits, logits_over
from localglm.engine.selftest_probes import PROBES
from localglm.engine.selftest_products import block_products
from localglm.ops.spec import Precision
from localglm.quant.types import Family, StorageType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = np.float32
_TINY = F(2.0**-126)


def _flushed(a: Any) -> Any:
    return np.where(np.abs(a) < _TINY, F(0), a)


class Cheap(CpuDevice):
    """A processor that takes one of the short cuts graphics cards are known for."""

    short_cut = ""

    def add(self, x: Any, y: Any) -> Any:
        if self.short_cut == "subnormals kept":
            return _flushed(_flushed(x) + _flushed(y))
        if self.short_cut == "rounding to nearest even":
            exact = np.asarray(x, np.float64) + np.asarray(y, np.float64)
            near = exact.astype(F)
            return np.where(np.abs(near) > np.abs(exact), np.nextafter(near, F(0)), near)
        return super().add(x, y)

    def combine(self, rows: Any, weights: Any, shared: Any) -> Any:
        if self.short_cut != "fma fused":
            return super().combine(rows, weights, shared)
        total = np.zeros_like(shared)
        for rank in range(rows.shape[1]):
            total = total + weights[:, rank, None] * rows[:, rank]
        return total + shared

    def hyper_post(self, y: Any, streams: Any, post: Any, comb: Any) -> Any:
        if self.short_cut != "products kept apart":
            return super().hyper_post(y, streams, post, comb)
        wide = [np.asarray(a, np.float64) for a in (y, streams, post, comb)]
        mixed = np.einsum("tsj,tsd->tjd", wide[3], wide[1])
        return (wide[2][:, :, None] * wide[0][:, None] + mixed).astype(F)

    def stream_mean(self, streams: Any) -> Any:
        if self.short_cut != "division":
            return super().stream_mean(streams)
        return streams.sum(axis=1) * (F(1) / F(streams.shape[1]))

    def rms_norm(self, x: Any, weight: Any, epsilon: float) -> Any:
        if self.short_cut != "square root":
            return super().rms_norm(x, weight, epsilon)
        root = np.sqrt(np.asarray(x * x + F(epsilon), np.float64))
        return x * (1 / root).astype(F) * weight


@pytest.fixture
def cheap() -> Iterator[Callable[[str], Cheap]]:
    made: list[Cheap] = []

    def make(short_cut: str) -> Cheap:
        made.append(Cheap(threads=1))
        made[-1].short_cut = short_cut
        return made[-1]

    yield make
    for device in made:
        device.close()


@pytest.mark.parametrize("name", [p.name for p in PROBES])
def test_a_short_cut_fails_its_own_probe_and_no_other(
    name: str, cheap: Callable[[str], Cheap]
) -> None:
    device = cheap(name)
    assert [p.name for p in PROBES if p.run(device) > 1] == [name]


def test_without_short_cuts_every_probe_is_exact(cheap: Callable[[str], Cheap]) -> None:
    device = cheap("")
    assert [p.run(device) for p in PROBES] == [0.0] * len(PROBES)


def test_known_logits_cover_every_position() -> None:
    known = np.load(KNOWN, allow_pickle=False)
    assert known.shape[0] == len(IDS) == len(set(IDS))
    assert np.isfinite(known).all()


def test_another_prompt_is_far_from_the_known_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice(threads=1)
    assert logits_over(device, Precision.EIGHT_BIT) <= 1.0
    changed = (IDS[0] + 1, *IDS[1:])
    monkeypatch.setattr("localglm.engine.selftest_model.IDS", changed)
    assert logits_over(device, Precision.EIGHT_BIT) > 1.0
    assert logits(device).shape[0] == len(changed)
    device.close()


BLOCK_TYPES = [k for k in StorageType if k.family is not Family.FLOAT]


class Scaled(CpuDevice):
    """A processor whose kernel of one storage type is a hundredth of a percent off."""

    kind = StorageType.Q4_K

    def matmul(self, weight: Any, x: Any) -> Any:
        right = super().matmul(weight, x)
        return right * F(1.0001) if weight.type is self.kind else right


@pytest.mark.parametrize("kind", BLOCK_TYPES, ids=lambda k: k.name)
def test_a_kernel_of_one_type_slightly_off_is_seen_in_that_type(kind: StorageType) -> None:
    device = Scaled(threads=1)
    device.kind = kind
    wrong = {label.split(",")[0] for label, error in block_products(device) if error > 1}
    device.close()
    assert wrong == {kind.name}
