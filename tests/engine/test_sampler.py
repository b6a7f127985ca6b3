"""The sampler: ranges, filters, penalties, seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.engine.checks import check_sampling
from localglm.engine.protocol import Sampling
from localglm.engine.sampler import Sampler, best, draw
from localglm.errors import NumericFaultError, UsageError

ROWS = st.lists(st.integers(-40, 40), min_size=2, max_size=60).map(
    lambda v: np.asarray(v, np.float32) / 8
)


def many(logits: list[float], sampling: Sampling, count: int = 4000) -> np.ndarray:
    sampler = Sampler(sampling)
    row = np.asarray(logits, np.float32)
    return np.bincount([sampler.choose(row) for _ in range(count)], minlength=row.size) / count


def test_greedy_takes_the_lowest_id_of_a_tie() -> None:
    row = np.asarray([0.0, 2.0, 2.0, 1.0], np.float32)
    assert Sampler(Sampling(temperature=0.0)).choose(row) == 1
    assert int(row.size - 1 - np.argmax(row[::-1])) == 2  # the other way round would give this


@pytest.mark.parametrize(
    ("sampling", "accepted"),
    [
        (Sampling(temperature=-0.1), "0 to 10"),
        (Sampling(temperature=math.nan), "0 to 10"),
        (Sampling(temperature=10.5), "0 to 10"),
        (Sampling(top_k=0), "1 or more"),
        (Sampling(top_p=0.0), "more than 0 to 1"),
        (Sampling(top_p=1.5), "more than 0 to 1"),
        (Sampling(min_p=-0.5), "0 to 1"),
        (Sampling(repetition_penalty=0.0), "0.1 to 10"),
        (Sampling(presence_penalty=3.0), "-2 to 2"),
        (Sampling(frequency_penalty=-2.5), "-2 to 2"),
        (Sampling(seed=-1), "0 to 2^63 - 1"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(sampling: Sampling, accepted: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_sampling(sampling)
    assert accepted in caught.value.why


def test_the_edges_of_the_ranges_are_accepted() -> None:
    check_sampling(Sampling(temperature=10.0, top_p=1.0, min_p=0.0, top_k=1, seed=0))


def test_frequencies_follow_the_softmax_at_the_temperature() -> None:
    seen = many([0.0, 1.0, 2.0], Sampling(temperature=2.0, seed=7), 8000)
    hot = np.exp(np.asarray([0.0, 0.5, 1.0]))
    cold = np.exp(np.asarray([0.0, 1.0, 2.0]))
    assert np.abs(seen - hot / hot.sum()).max() < 0.02
    assert np.abs(seen - cold / cold.sum()).max() > 0.05  # temperature left out


def test_top_k_keeps_the_k_best() -> None:
    seen = many([3.0, 1.0, 2.0, 0.0], Sampling(top_k=2, seed=1))
    assert seen[1] == seen[3] == 0.0
    assert seen[2] > 0.0


def test_top_p_keeps_the_shortest_head_that_reaches_p() -> None:
    shares = [0.5, 0.3, 0.15, 0.05]
    row = [math.log(share) for share in shares]
    assert np.count_nonzero(many(row, Sampling(top_p=0.79, seed=1))) == 2
    assert np.count_nonzero(many(row, Sampling(top_p=0.81, seed=1))) == 3
    assert np.count_nonzero(many(row, Sampling(top_p=1.0, seed=1))) == 4


def test_min_p_is_relative_to_the_best() -> None:
    row = [math.log(share) for share in (0.5, 0.3, 0.15, 0.05)]
    assert np.count_nonzero(many(row, Sampling(min_p=0.25, seed=1))) == 3
    # An absolute threshold of 0.25 would keep two.
    assert np.count_nonzero(many(row, Sampling(min_p=0.65, seed=1))) == 1


def test_presence_counts_once_and_frequency_every_time() -> None:
    row = np.asarray([1.0, 0.0], np.float32)
    presence = Sampler(Sampling(temperature=0.0, presence_penalty=0.6))
    assert [presence.choose(row) for _ in range(4)] == [0, 0, 0, 0]
    frequency = Sampler(Sampling(temperature=0.0, frequency_penalty=0.6))
    assert [frequency.choose(row) for _ in range(4)] == [0, 0, 1, 0]


def test_repetition_sees_the_prompt_and_shrinks_either_sign() -> None:
    row = np.asarray([1.0, 0.9, -0.1], np.float32)
    plain = Sampler(Sampling(temperature=0.0, repetition_penalty=1.2))
    assert plain.choose(row) == 0
    told = Sampler(Sampling(temperature=0.0, repetition_penalty=1.2))
    told.note_prompt([0])
    assert told.choose(row) == 1
    negative = Sampler(Sampling(temperature=0.0, repetition_penalty=2.0))
    negative.note_prompt([0])
    assert negative.choose(np.asarray([-1.0, -1.5], np.float32)) == 1


def test_presence_ignores_the_prompt() -> None:
    sampler = Sampler(Sampling(temperature=0.0, presence_penalty=2.0))
    sampler.note_prompt([0])
    assert sampler.choose(np.asarray([1.0, 0.0], np.float32)) == 0


def test_the_same_seed_gives_the_same_tokens_and_another_does_not() -> None:
    rows = np.random.default_rng(3).normal(size=(40, 500)).astype(np.float32)
    first, again, other = (Sampler(Sampling(seed=s)) for s in (5, 5, 6))
    tokens = [first.choose(row) for row in rows]
    assert tokens == [again.choose(row) for row in rows]
    assert tokens != [other.choose(row) for row in rows]


def test_a_missing_seed_is_chosen_and_told() -> None:
    rows = np.random.default_rng(3).normal(size=(20, 500)).astype(np.float32)
    free = Sampler(Sampling())
    tokens = [free.choose(row) for row in rows]
    replay = Sampler(Sampling(seed=free.seed))
    assert tokens == [replay.choose(row) for row in rows]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_logit_that_is_not_finite_is_a_named_fault(bad: float) -> None:
    row = np.asarray([0.0, bad, 1.0], np.float32)
    with pytest.raises(NumericFaultError, match="token id 1"):
        Sampler(Sampling(temperature=0.0)).choose(row)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.integers(1, 70))
def test_the_best_come_in_order_with_ties_to_the_lower_id(row: np.ndarray, count: int) -> None:
    scores = row.astype(np.float64)
    expected = sorted(range(scores.size), key=lambda i: (-scores[i], i))[:count]
    assert best(scores, count).tolist() == expected


@settings(max_examples=400, deadline=None)
@given(
    ROWS,
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 20),
    st.none() | st.integers(1, 30),
    st.none() | st.floats(0.01, 1.0),
    st.none() | st.floats(0.0, 1.0),
    st.sampled_from([1e-310, 0.2, 1.0, 2.0]),
)
def test_a_short_head_decides_as_the_whole_vocabulary(
    row: np.ndarray,
    uniform: float,
    head: int,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
    temperature: float,
) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    scores = row.astype(np.float64)
    whole = draw(scores, sampling, uniform, scores.size)
    assert whole is not None
    short = draw(scores, sampling, uniform, max(head, top_k or 0))
    assert short in {None, whole}


@settings(max_examples=200, deadline=None)
@given(ROWS, st.floats(0, 1, exclude_max=True), st.integers(1, 30), st.floats(0.01, 1.0))
def test_what_is_drawn_passes_every_filter(
    row: np.ndarray, uniform: float, top_k: int, top_p: float
) -> None:
    scores = row.astype(np.float64)
    token = draw(scores, Sampling(top_k=top_k, top_p=top_p), uniform, scores.size)
    order = sorted(range(scores.size), key=lambda i: (-scores[i], i))[:top_k]
    weights = np.exp(scores[order])
    head = np.cumsum(weights)[: order.index(token)]
    assert head.size == 0 or head[-1] < top_p * weights.sum() * (1 + 1e-12)
