"""Which cells a query attends: ties, budget, tail, and equality with dense attention."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from conftest import Subject

    from localglm.arrays import AnyArray
    from localglm.backends.base import Cells

POOL, KEPT = 4, 4
BUDGET = POOL * KEPT
RECORDED = Path(__file__).parents[1] / "oracle" / "select_cases.json"


def _chosen(subject: Subject, cells: Cells) -> list[list[int]]:
    index, count = subject.device.download(cells.index), subject.device.download(cells.count)
    return [row[:n].tolist() for row, n in zip(index, count, strict=True)]


def _select(
    subject: Subject, scores: AnyArray, position: int, *, tail: bool = True, kept: int = KEPT
) -> list[int]:
    """Return the cells of one query at ``position``."""
    buffer = subject.device.upload(np.asarray(scores, dtype=np.float32)[None])
    cells = subject.device.select_cells(buffer, position, POOL, kept, tail)
    return _chosen(subject, cells)[0]


def _whole(pools: list[int]) -> list[int]:
    return [pool * POOL + slot for pool in pools for slot in range(POOL)]


def test_recorded_choices_are_reproduced(subject: Subject) -> None:
    cases = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert len(cases) >= 50
    for case in cases:
        scores = np.array(case["scores"], dtype=np.float32)[None]
        cells = subject.device.select_cells(
            subject.device.upload(scores.reshape(1, len(case["scores"]))),
            case["n_tokens"] - 1,
            case["kpool"],
            case["top_k"] // case["kpool"],
            True,
        )
        assert _chosen(subject, cells)[0] == sorted(case["cells"]), case


def test_some_recorded_choice_depends_on_ties() -> None:
    """The control: with ties to the higher pool the recorded choices are missed."""
    missed = 0
    for case in json.loads(RECORDED.read_text(encoding="utf-8")):
        kept = case["top_k"] // case["kpool"]
        order = sorted(range(len(case["scores"])), key=lambda p: (-case["scores"][p], -p))
        missed += sorted(order[:kept]) != sorted(case["pools"])
    assert missed >= 5


def test_equal_scores_at_the_cut_go_to_the_lower_pools(subject: Subject) -> None:
    assert _select(subject, np.array([0, 1, 0, 0, 0, 1.0]), 23) == _whole([0, 1, 2, 5])


def test_plus_and_minus_zero_are_equal_scores(subject: Subject) -> None:
    assert _select(subject, np.array([-0.0, 0.0, -0.0, 0.0, 0.0, 0.0]), 23) == _whole([0, 1, 2, 3])


@pytest.mark.parametrize("position", [0, 2, 3, 14, 15, 18])
def test_up_to_the_budget_the_choice_is_dense(subject: Subject, position: int) -> None:
    scores = -np.arange((position + 1) // POOL)
    dense = _chosen(subject, subject.device.dense_cells(1, position))[0]
    assert _select(subject, scores, position) == dense == list(range(position + 1))


def test_one_pool_past_the_budget_the_choice_is_not_dense(subject: Subject) -> None:
    assert _select(subject, np.array([3, 2, 1, 0, 4.0]), 19) == _whole([0, 1, 2, 4])


def test_the_open_pool_is_attended_outside_the_budget(subject: Subject) -> None:
    scores = np.array([3, 2, 1, 0, 4.0])
    cells = _select(subject, scores, 22)
    assert cells == [*_whole([0, 1, 2, 4]), 20, 21, 22]
    assert len(cells) == BUDGET + POOL - 1
    assert _select(subject, scores, 22, tail=False) == _whole([0, 1, 2, 4])


def test_a_token_that_completes_its_pool_may_miss_itself(subject: Subject) -> None:
    cells = _select(subject, np.array([3, 2, 1, 1, 0.0]), 19)
    assert 19 not in cells


def test_a_pool_is_never_seen_before_its_last_token(subject: Subject) -> None:
    device = subject.device
    source = np.random.default_rng(1)
    query, weight, pools = source.normal(size=(8, 2, 16)), np.ones((8, 2)), np.ones((2, 16))
    handles = (device.upload(a.astype(np.float32)) for a in (query, weight, pools))
    scores = device.download(device.indexer_scores(*handles, 0, POOL))
    hidden = np.isneginf(scores)
    expected = [[m < 3, m < 7] for m in range(8)]
    assert hidden.tolist() == expected


@pytest.mark.parametrize("count", [1, 15, 18])
def test_sparse_attention_equals_dense_up_to_the_budget(subject: Subject, count: int) -> None:
    device, source = subject.device, np.random.default_rng(count)
    query = device.upload(source.normal(size=(count, 2, 32)).astype(np.float32))
    latents = device.upload(source.normal(size=(count, 32)).astype(np.float32))
    pools = np.round(source.normal(size=(count, count // POOL))).astype(np.float32)
    kept = device.select_cells(device.upload(pools), 0, POOL, KEPT, True)
    sparse = device.mla_attend(query, latents, kept, 0.25)
    dense = device.mla_attend(query, latents, device.dense_cells(count, 0), 0.25)
    np.testing.assert_array_equal(device.download(sparse), device.download(dense))


def test_past_the_budget_sparse_attention_differs_from_dense(subject: Subject) -> None:
    device, source, count = subject.device, np.random.default_rng(3), 24
    query = device.upload(source.normal(size=(count, 2, 32)).astype(np.float32))
    latents = device.upload(source.normal(size=(count, 32)).astype(np.float32))
    pools = device.upload(source.normal(size=(count, count // POOL)).astype(np.float32))
    sparse = device.mla_attend(query, latents, device.select_cells(pools, 0, POOL, 4, True), 0.25)
    dense = device.mla_attend(query, latents, device.dense_cells(count, 0), 0.25)
    assert np.max(np.abs(device.download(sparse) - device.download(dense))) > 0.01
