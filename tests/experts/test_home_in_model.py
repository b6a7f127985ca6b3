"""A whole model whose experts are read from its files computes the bits of one that is mapped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from localglm.backends.base import StoredExperts, StoredMatrix
from localglm.backends.cpu.device import CpuDevice
from localglm.errors import MemoryShortError
from localglm.experts import minimum_memory, open_home
from localglm.experts.layout import PARTS
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed
from tests import oracle_archive as oracle


def _stored(file, item):
    name = item.info.name
    return StoredMatrix(name, item.expected.shape, item.info.type, file.data(name))


class SwappingHome:
    """Gives the bytes of the neighbour: a home that must be found out."""

    def __init__(self, home):
        self.home = home

    def expect(self, layer, experts, *, certain):
        pass

    def lend(self, layer, experts):
        for some in self.home.lend(layer, [e ^ 1 for e in experts]):
            yield [replace(one, expert=one.expert ^ 1) for one in some]


def logits(name, wrap=None, budget=None, chunks=(5, 1, 1, 1)):
    """Return the logits of every chunk, and what the home did; without a budget all is mapped."""
    file = open_model(oracle.model_path(name))
    found = survey(file)
    device = CpuDevice(2)
    home = None
    if budget is not None:
        home = open_home(file, found, memory=int(budget * minimum_memory(found)), depth=4)
    try:
        given = home if wrap is None else wrap(home)
        geometry, weights = load_surveyed(file, found, device, home=given)
        model = Model(geometry, weights, device)
        state = model.new_state(context=64)
        ids = np.random.default_rng(2).integers(0, geometry.vocabulary, sum(chunks)).tolist()
        rows = []
        for count in chunks:
            rows.append(model.forward(state, ids[:count]).tobytes())
            ids = ids[count:]
        return rows, None if home is None else home.statistics()
    finally:
        device.close()
        if home is not None:
            home.close()
        file.close()


@pytest.mark.parametrize("name", ["tiny-upstream", "tiny-kquants"])
@pytest.mark.parametrize("budget", [1.0, 1.7])
def test_logits_are_equal_bit_for_bit_with_mapped_experts(name, budget) -> None:
    mapped, _ = logits(name)
    streamed, stats = logits(name, budget=budget)
    assert streamed == mapped
    assert stats.misses + stats.foreseen > 0
    assert stats.guess_rate is not None, "the model says what it thinks comes next"


def test_the_experts_of_a_neighbour_change_the_logits() -> None:
    mapped, _ = logits("tiny-upstream")
    swapped, _ = logits("tiny-upstream", wrap=SwappingHome, budget=1.0)
    assert swapped != mapped


def test_less_than_the_least_budget_is_refused_before_anything_is_read() -> None:
    with pytest.raises(MemoryShortError, match="too little for the experts"):
        logits("tiny-kquants", budget=0.99)


def test_one_layer_gives_the_same_rows_whatever_its_storage_types() -> None:
    file = open_model(oracle.model_path("tiny-kquants"))
    found = survey(file)
    home = open_home(file, found, memory=minimum_memory(found), depth=2)
    device = CpuDevice(1)
    kinds = set()
    for layer in found.geometry.layers:
        if layer.dense:
            continue
        items = [found.tensors[f"blk.{layer.index}.ffn_{p}_exps.weight"] for p in PARTS]
        kinds.add(tuple(item.info.type for item in items))
        stored = StoredExperts(layer.index, *(_stored(file, item) for item in items))
        source = np.random.default_rng(layer.index)
        x = device.upload(source.standard_normal((3, stored.gate.shape[2])).astype(np.float32))
        count = stored.gate.shape[0]
        ids = device.upload(np.array([[0, 1], [count - 1, 0], [2, 3]], np.int32))
        rows = [
            device.download(device.expert_ffn(device.experts(stored, place), x, ids, 7.0))
            for place in (None, home)
        ]
        assert rows[0].tobytes() == rows[1].tobytes()
    assert len(kinds) > 1, "the layers differ in their types"
    device.close()
    home.close()
    file.close()
