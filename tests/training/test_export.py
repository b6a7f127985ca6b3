"""A file that the training code exported, against logits of its own forward pass in float64.

``python -m training.parity --fixture tests/training`` (needs torch) writes both again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from localglm.arrays import AnyArray
from localglm.backends.reference.device import ReferenceDevice
from localglm.gguf import open_model
from localglm.model.draft import Draft
from localglm.model.geometry import Geometry
from localglm.model.graph import Model
from localglm.model.load import load_model

HERE = Path(__file__).parent
BOUND = 1e-3


@pytest.fixture(scope="module")
def expected() -> dict[str, AnyArray]:
    with np.load(HERE / "export-tiny.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def product(
    ids: AnyArray, changed: dict[str, object] | None = None, *, forgets: bool = False
) -> tuple[AnyArray, AnyArray]:
    """Return trunk and draft logits; ``changed`` replaces numbers of the indexer."""
    device = ReferenceDevice()
    tokens = ids.tolist()
    with open_model(HERE / "export-tiny.gguf") as file:
        geometry, weights = load_model(file, device)
        if changed:
            geometry = replace(geometry, indexer=replace(geometry.indexer, **changed))
        model = Model(geometry, weights, device)
        state = model.new_state(context=len(tokens), cache_type="f32")
        out = model.advance(state, tokens, logits="all")
        draft = Draft(model, context=len(tokens), cache_type="f32")
        hidden = device.rows(out.hidden, 0, len(tokens) - 1)
        rows = draft.step(tokens[1:], hidden, zero_first=forgets)
        assert out.logits is not None
        return np.array(out.logits), np.array(rows.logits)


def error(got: AnyArray, want: AnyArray) -> float:
    """Largest error of a row over that row's largest magnitude."""
    return float((np.abs(got - want).max(-1) / np.abs(want).max(-1)).max())


def test_an_exported_model_computes_what_its_training_code_does(
    expected: dict[str, AnyArray],
) -> None:
    trunk, draft = product(expected["ids"])
    assert error(trunk, expected["trunk"]) < BOUND
    assert error(draft, expected["draft"]) < BOUND


def test_the_comparison_sees_a_selection_that_is_not_in_force(
    expected: dict[str, AnyArray],
) -> None:
    trunk, draft = product(expected["ids"], {"top_k": 400})
    assert error(trunk, expected["trunk"]) > 10 * BOUND
    assert error(draft, expected["draft"]) > 10 * BOUND


def test_the_comparison_sees_a_tail_that_is_not_attended(expected: dict[str, AnyArray]) -> None:
    trunk, _ = product(expected["ids"], {"select_tail": False})
    assert not error(trunk, expected["trunk"]) < 10 * BOUND


def test_the_comparison_sees_a_draft_without_its_first_embedding(
    expected: dict[str, AnyArray],
) -> None:
    _, draft = product(expected["ids"], forgets=True)
    assert error(draft, expected["draft"]) > 10 * BOUND


def test_the_file_states_every_number_of_the_architecture() -> None:
    with open_model(HERE / "export-tiny.gguf") as file:
        geometry: Geometry = load_model(file, ReferenceDevice())[0]
    assert len(geometry.layers) == 4
    assert geometry.draft is not None
    assert [layer.attention.value for layer in geometry.layers] == ["kda", "kda", "kda", "mla"]
    assert [layer.dense for layer in geometry.layers] == [True, False, False, False]
    assert {layer.expert_limit for layer in geometry.layers} == {10.0}
    assert (geometry.indexer.top_k, geometry.indexer.pool) == (32, 4)
    assert (geometry.moe.experts, geometry.moe.used, geometry.moe.scale) == (4, 2, 2.5)
