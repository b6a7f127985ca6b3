"""Experts borrowed from a home give the rows of experts that are mapped, however they arrive."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from localglm.backends.base import LentExpert, StoredExperts
from localglm.backends.cpu.device import CpuDevice
from localglm.errors import ModelFileError, ShapeError
from localglm.ops.cases.random import generator, matrix, normal
from localglm.quant.types import StorageType

EXPERTS, D, F = 7, 256, 512
TYPES = (StorageType.IQ2_XXS, StorageType.IQ2_XXS, StorageType.IQ3_XXS)


def layer_of_experts(layer: int = 4) -> StoredExperts:
    source = generator("experts at home")
    gate, up = (matrix(source, kind, EXPERTS, F, D) for kind in TYPES[:2])
    return StoredExperts(layer, gate, up, matrix(source, TYPES[2], EXPERTS, D, F))


@dataclass
class CopyingHome:
    """Copies experts to its own memory, some at a time, and spoils what was given back."""

    stored: StoredExperts
    at_once: int
    swaps: bool = False
    expected: list[tuple[int, list[int], bool]] = field(default_factory=list)
    lent: list[list[int]] = field(default_factory=list)

    def expect(self, layer, experts, *, certain):
        self.expected.append((layer, list(experts), certain))

    def lend(self, layer, experts):
        assert layer == self.stored.layer
        order = list(experts)[::-1]
        for first in range(0, len(order), self.at_once):
            some = order[first : first + self.at_once]
            self.lent.append(some)
            batch = [self._copy(e) for e in some]
            yield batch
            for one in batch:
                one.gate[:] = 0xFF
                one.down[:] = 0xFF

    def _copy(self, expert):
        sides = (self.stored.gate, self.stored.up, self.stored.down)
        parts = [side.data.reshape(EXPERTS, -1)[expert].copy() for side in sides]
        if self.swaps:
            parts[0], parts[1] = parts[1], parts[0]
        return LentExpert(expert, *parts)


def rows_of(home, tokens=5):
    source = generator("tokens at home")
    x = normal(source, tokens, D)
    ids = np.argsort(source.random((tokens, EXPERTS)), axis=1)[:, :3].astype(np.int32)
    device = CpuDevice(2)
    try:
        experts = device.experts(layer_of_experts(), home)
        chosen = device.upload(ids)
        device.expect_experts(experts, chosen, certain=True)
        rows = device.expert_ffn(experts, device.upload(x), chosen, 7.0)
        return device.download(rows), sorted(set(ids.ravel().tolist())), experts.resident
    finally:
        device.close()


@pytest.mark.parametrize("at_once", [1, 2, 7])
@pytest.mark.parametrize("tokens", [1, 2, 9])
def test_borrowed_experts_give_the_same_bits(at_once, tokens) -> None:
    home = CopyingHome(layer_of_experts(), at_once)
    rows, ids, resident = rows_of(home, tokens)
    mapped, _, mapped_resident = rows_of(None, tokens)
    wrong, _, _ = rows_of(CopyingHome(layer_of_experts(), at_once, swaps=True), tokens)
    assert rows.tobytes() == mapped.tobytes()
    assert wrong.tobytes() != mapped.tobytes()
    assert (resident, mapped_resident) == (False, True)
    assert home.expected == [(4, ids, True)]
    assert sorted(e for some in home.lent for e in some) == ids


def test_a_home_that_cannot_read_stops_the_op() -> None:
    class Broken:
        def expect(self, layer, experts, *, certain):
            pass

        def lend(self, layer, experts):
            raise ModelFileError("gone", why="the drive is gone", try_="plug it in")
            yield

    with pytest.raises(ModelFileError, match="gone"):
        rows_of(Broken())


def test_stacks_that_are_not_one_layer_are_refused() -> None:
    good = layer_of_experts()
    device = CpuDevice(1)
    try:
        with pytest.raises(ShapeError, match="not one layer"):
            device.experts(StoredExperts(1, good.gate, good.up, good.gate))
    finally:
        device.close()
