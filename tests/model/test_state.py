"""Sequences: chunks, snapshots, forks and taking tokens back never change a number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from localglm.engine.devices import DeviceChoice, opened
from localglm.errors import RequestError
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.load import load_model
from localglm.model.state import State
from tests import oracle_archive as oracle


@pytest.fixture(scope="module", params=["tiny-upstream", "tiny-q8_0"])
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    with (
        opened(DeviceChoice("cpu", threads=1)) as device,
        open_model(oracle.model_path(request.param)) as file,
    ):
        yield Model(*load_model(file, device), device)


IDS = [int(i) for i in np.random.default_rng(7).integers(0, 300, 60)]


def feed(model: Model, state: State, ids: list[int], chunk: int) -> np.ndarray:
    rows = [
        model.forward(state, ids[a : a + chunk], logits="all") for a in range(0, len(ids), chunk)
    ]
    return np.concatenate(rows)


def test_chunks_of_any_size_give_the_same_bits(model: Model) -> None:
    whole = feed(model, model.new_state(context=64), IDS, 60)
    for chunk in (1, 3, 7, 16, 59):
        assert np.array_equal(whole, feed(model, model.new_state(context=64), IDS, chunk)), chunk


def test_another_token_changes_what_follows_but_not_what_came_before(model: Model) -> None:
    other = [*IDS[:30], (IDS[30] + 1) % 300, *IDS[31:]]
    a = feed(model, model.new_state(context=64), IDS, 60)
    b = feed(model, model.new_state(context=64), other, 60)
    assert np.array_equal(a[:30], b[:30])
    assert not np.array_equal(a[31:], b[31:])


def test_a_restored_snapshot_continues_with_the_same_bits(model: Model) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:22], 22)
    saved = state.snapshot()
    first = feed(model, state, IDS[22:40], 5)
    state.restore(saved)
    assert state.position == 22
    assert np.array_equal(first, feed(model, state, IDS[22:40], 18))


def test_a_later_snapshot_can_be_restored_while_its_rows_are_intact(model: Model) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:10], 10)
    early = state.snapshot()
    feed(model, state, IDS[10:25], 15)
    late = state.snapshot()
    expected = feed(model, state, IDS[25:30], 5)
    state.restore(early)
    assert state.can_restore(late)
    state.restore(late)
    assert np.array_equal(expected, feed(model, state, IDS[25:30], 5))


def test_a_snapshot_of_overwritten_rows_is_refused(model: Model) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:10], 10)
    early = state.snapshot()
    feed(model, state, IDS[10:25], 15)
    late = state.snapshot()
    state.restore(early)
    feed(model, state, [1, 2, 3], 3)
    with pytest.raises(RequestError, match="no longer valid"):
        state.restore(late)


@pytest.mark.parametrize("taken", [1, 2, 5, 9])
def test_tokens_taken_back_leave_no_trace(model: Model, taken: int) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:21], 21)
    state.mark()
    feed(model, state, IDS[21:30], 4)
    state.rollback(taken)
    kept = 30 - taken
    assert state.tokens == tuple(IDS[:kept])
    got = feed(model, state, IDS[40:52], 12)
    fresh = model.new_state(context=64)
    feed(model, fresh, IDS[:kept], kept)
    assert np.array_equal(got, feed(model, fresh, IDS[40:52], 12))


def test_tokens_can_be_taken_back_twice_from_one_mark(model: Model) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:9], 9)
    state.mark()
    feed(model, state, IDS[9:15], 6)
    state.rollback(2)
    feed(model, state, IDS[30:34], 4)
    state.rollback(3)
    got = feed(model, state, IDS[50:55], 5)
    fresh = model.new_state(context=64)
    feed(model, fresh, [*IDS[:13], IDS[30]], 14)
    assert np.array_equal(got, feed(model, fresh, IDS[50:55], 5))


def test_more_tokens_than_were_added_since_the_mark_are_not_taken_back(model: Model) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:5], 5)
    with pytest.raises(RequestError, match="cannot be taken back"):
        state.rollback(1)
    state.mark()
    feed(model, state, IDS[5:7], 2)
    with pytest.raises(RequestError, match="3 tokens cannot be taken back"):
        state.rollback(3)
    assert state.position == 7


def test_a_fork_and_its_source_go_different_ways(model: Model) -> None:
    state = model.new_state(context=64)
    feed(model, state, IDS[:20], 20)
    twin = state.fork()
    feed(model, twin, IDS[40:50], 10)
    expected = model.new_state(context=64)
    feed(model, expected, IDS[:20], 20)
    assert np.array_equal(feed(model, state, IDS[20:30], 10), feed(model, expected, IDS[20:30], 10))


def test_a_full_context_is_refused_with_the_counts_and_loses_nothing(model: Model) -> None:
    state = model.new_state(context=16)
    feed(model, state, IDS[:14], 14)
    with pytest.raises(RequestError, match="17 tokens do not fit a context of 16"):
        model.forward(state, IDS[:3])
    assert model.forward(state, IDS[14:16]) is not None


@pytest.mark.parametrize("ids", [[], [-1], [10**9]])
def test_ids_outside_the_vocabulary_are_refused(model: Model, ids: list[int]) -> None:
    state = model.new_state(context=16)
    with pytest.raises(RequestError):
        model.forward(state, ids)
    assert state.position == 0


def test_a_pass_that_fails_half_way_marks_the_state(model: Model) -> None:
    state = model.new_state(context=16)
    feed(model, state, IDS[:4], 4)
    saved = state.snapshot()
    state.begin([1])
    with pytest.raises(RequestError, match="cannot go on"):
        model.forward(state, [1])
    state.restore(saved)
    assert model.forward(state, [1]) is not None
