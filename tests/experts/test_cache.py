"""Slots and owners: the invariant under any order of events, who makes room, budgets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.errors import MemoryShortError
from localglm.experts.cache import ExpertCache, SlotState
from localglm.experts.frequency import HALF_LIFE, AgedFrequency

SLOT = 4096
LAYERS, EXPERTS = (1, 2), 6


def make_cache(slots=4, least=2):
    worth = AgedFrequency(LAYERS, EXPERTS)
    return ExpertCache(SLOT, slots * SLOT, least, worth), worth


def fill(cache, *keys):
    for key in keys:
        slot, _ = cache.claim(key, ())
        cache.hold(slot)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2), st.integers(0, 5)), max_size=60))
def test_slots_and_owners_agree_after_any_events(events) -> None:
    cache, worth = make_cache()
    for what, layer, expert in events:
        key = (layer, expert)
        slot = cache.place(key)
        state = None if slot is None else cache.state(slot)
        if what == 0 and slot is None:
            cache.claim(key, ())
        elif what == 1 and state is SlotState.READING:
            cache.hold(slot)
        elif what == 2 and state is SlotState.HELD:
            assert len(cache.lend(key)) == SLOT
        elif what == 3 and state is SlotState.LENT:
            cache.give_back(key)
        elif what == 4 and state in {SlotState.READING, SlotState.HELD}:
            cache.vacate(slot)
        elif what == 5:
            cache.resize((2 + expert) * SLOT)
            assert cache.slots == 2 + expert
        worth.use(layer, [expert])
        cache.check()
        if state is SlotState.LENT and what != 3:
            assert cache.place(key) == slot, "a lent slot was taken"
    cache.close()


def test_a_wrong_owner_is_noticed() -> None:
    cache, _ = make_cache()
    fill(cache, (1, 0), (1, 1))
    cache._places[1, 0], cache._places[1, 1] = cache._places[1, 1], cache._places[1, 0]
    with pytest.raises(AssertionError, match="not in slot"):
        cache.check()


def test_vacant_slots_come_first_and_then_the_expert_wanted_least() -> None:
    cache, worth = make_cache(slots=3)
    for expert, uses in ((0, 5), (1, 1), (2, 3)):
        for _ in range(uses):
            worth.use(1, [expert])
    fill(cache, (1, 0), (1, 1))
    assert cache.claim((1, 2), ())[1] is None
    cache.hold(cache.place((1, 2)))
    assert cache.claim((2, 0), ())[1] == (1, 1)
    assert cache.claim((2, 1), {(1, 2)})[1] == (1, 0)
    assert cache.claim((2, 2), {(1, 2)}) is None, "what is kept or being read stays"
    cache.close()


def test_uses_age_and_the_order_of_two_never_changes_without_a_use() -> None:
    worth = AgedFrequency(LAYERS, EXPERTS)
    for _ in range(3):
        worth.use(1, [0])
    for _ in range(4 * HALF_LIFE):
        worth.use(1, [])
    worth.use(1, [1])
    old, new = worth.of([worth.row(1, 0), worth.row(1, 1)])
    assert new > old, "one use now is worth more than three four half-lives ago"
    young = AgedFrequency(LAYERS, EXPERTS)
    for _ in range(3):
        young.use(1, [0])
    young.use(1, [1])
    assert young.of([young.row(1, 0)])[0] > young.of([young.row(1, 1)])[0]


def test_a_budget_below_the_least_is_refused_with_the_numbers() -> None:
    with pytest.raises(MemoryShortError) as caught:
        make_cache(slots=1)
    assert "4.0 KiB are too little" in caught.value.what
    assert "8.0 KiB" in caught.value.why
    cache, _ = make_cache(slots=2)
    with pytest.raises(MemoryShortError):
        cache.resize(SLOT)
    assert cache.slots == 2


def test_memory_goes_back_at_once_but_for_what_is_in_use() -> None:
    cache, _ = make_cache(slots=5)
    fill(cache, (1, 0), (1, 1), (1, 2), (1, 3))
    cache.lend((1, 0))
    cache.lend((1, 1))
    reading, _ = cache.claim((2, 0), ())
    cache.resize(2 * SLOT)
    assert [cache.place((1, e)) is not None for e in range(4)] == [True, True, False, False]
    cache.give_back((1, 0))
    assert cache.place((1, 0)) is None, "the third one goes when it is given back"
    cache.hold(reading)
    cache.give_back((1, 1))
    assert cache.is_held((2, 0))
    assert cache.is_held((1, 1))
    cache.resize(4 * SLOT)
    fill(cache, (2, 1), (2, 2))
    assert cache.is_held((2, 0))
    cache.check()
    cache.close()
