"""Expert choice by hand: what the bias does, where ties go, what the weights are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from localglm.errors import NumericFaultError, ShapeError

if TYPE_CHECKING:
    from conftest import Subject

    from localglm.arrays import AnyArray


def _route(
    subject: Subject, logits: list[float], bias: list[float], used: int, **forced: AnyArray
) -> tuple[list[int], AnyArray]:
    device = subject.device
    routing = device.route(
        device.upload(np.array([logits], dtype=np.float32)),
        device.upload(np.array(bias, dtype=np.float32)),
        used,
        2.5,
        **forced,
    )
    return device.download(routing.ids)[0].tolist(), device.download(routing.weights)[0]


def test_the_bias_steers_the_choice_and_not_the_weights(subject: Subject) -> None:
    ids, weights = _route(subject, [0, 0, 0, 0], [0, 0, 0.5, 0.25], 2)
    assert ids == [2, 3]
    np.testing.assert_allclose(weights, [1.25, 1.25], rtol=1e-6)


def test_ties_go_to_the_lower_expert(subject: Subject) -> None:
    assert _route(subject, [1, 2, 1, 2, 1], [0] * 5, 4)[0] == [1, 3, 0, 2]


def test_the_weights_sum_to_the_scale(subject: Subject) -> None:
    _, weights = _route(subject, [-1, 2, 0.5, 1], [0.1] * 4, 3)
    assert float(weights.sum()) == pytest.approx(2.5, rel=1e-6)


def test_all_experts_can_be_used(subject: Subject) -> None:
    ids, weights = _route(subject, [0, 3, -3, 1], [0] * 4, 4)
    assert ids == [1, 3, 0, 2]
    assert np.all(np.diff(weights) < 0)


def test_forced_experts_keep_their_own_weights(subject: Subject) -> None:
    ids, weights = _route(subject, [0, 3, -3, 1], [0] * 4, 2, forced=np.array([[2, 0]], np.int32))
    chance = 1 / (1 + np.exp([3.0, 0.0]))
    assert ids == [2, 0]
    np.testing.assert_allclose(weights, 2.5 * chance / chance.sum(), rtol=1e-6)


def test_a_forced_expert_that_does_not_exist_is_refused(subject: Subject) -> None:
    with pytest.raises(ShapeError):
        _route(subject, [0, 1], [0, 0], 1, forced=np.array([[2]], np.int32))


def test_a_logit_that_is_not_a_number_never_passes_unseen(subject: Subject) -> None:
    try:
        _, weights = _route(subject, [0, np.nan, 1], [0, 0, 0], 3)
    except NumericFaultError:
        return
    assert np.isnan(weights).any()
