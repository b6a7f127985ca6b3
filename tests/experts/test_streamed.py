"""A streamed home: right bytes under any budget, guesses, budgets that change, long prompts."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from localglm.errors import MemoryShortError
from localglm.experts.cache import ExpertCache
from localglm.experts.streamed import StreamedHome, StreamedOptions
from tests.experts.drives import (
    EXPERTS,
    SIZES,
    Drive,
    borrow,
    expected,
    make_home,
    make_layout,
    truth,
    write_files,
)


@pytest.mark.parametrize("slots", [4, 5, 11, 40])
def test_every_expert_arrives_whole_under_any_budget(tmp_path, slots) -> None:
    home = make_home(tmp_path, slots)
    chance = np.random.default_rng(slots)
    for _ in range(25):
        for layer in SIZES:
            count = int(chance.integers(1, EXPERTS + 1))
            wanted = sorted(chance.choice(EXPERTS, count, replace=False).tolist())
            guess = sorted(chance.choice(EXPERTS, 3, replace=False).tolist())
            if count % 4:
                home.expect(layer, wanted, certain=True)
            home.expect(5, guess, certain=False)
            got, batches = borrow(home, layer, wanted)
            assert got == truth(layer, wanted)
            assert max(batches) <= slots
            home._cache.check()
    home.close()


def test_the_shards_of_a_set_are_read_each_from_its_own_file(tmp_path) -> None:
    layout, contents = make_layout(shards=3)
    paths = write_files(tmp_path, contents)
    home = StreamedHome(layout, paths, 4 * layout.slot_bytes, StreamedOptions(4))
    for layer in SIZES:
        got, _ = borrow(home, layer, range(EXPERTS))
        assert got == {e: expected(layout, contents, layer, e) for e in range(EXPERTS)}
    home.close()


class EagerCache(ExpertCache):
    """Hands out slots that are still being read."""

    def is_held(self, key):
        return self.place(key) is not None

    def lend(self, key):
        return self.memory(self.place(key))

    def give_back(self, key):
        pass


def test_a_slot_handed_out_too_early_holds_other_bytes(tmp_path) -> None:
    gate = threading.Event()
    drive = Drive(b"", lambda number, offset, nbytes: None if gate.wait(60) else 0)
    layout, _ = make_layout()
    home = make_home(tmp_path, drive=drive)
    home._cache = EagerCache(layout.slot_bytes, 4 * layout.slot_bytes, 4, home._worth)
    got, _ = borrow(home, 2, [0, 1])
    assert got != truth(2, [0, 1])
    gate.set()
    home.close()


def test_what_is_in_memory_comes_first_while_the_rest_is_read(tmp_path) -> None:
    gate = threading.Event()
    gate.set()
    drive = Drive(b"", lambda number, offset, nbytes: None if gate.wait(60) else 0)
    home = make_home(tmp_path, drive=drive)
    borrow(home, 2, [3, 4])
    gate.clear()
    home.expect(2, [1, 3, 4], certain=True)
    lending = home.lend(2, [1, 3, 4])
    assert [one.expert for one in next(lending)] == [3, 4]
    gate.set()
    assert [one.expert for one in next(lending)] == [1]
    assert list(lending) == []
    stats = home.statistics()
    assert (stats.hits, stats.foreseen, stats.misses) == (2, 0, 3)
    assert stats.hit_rate == 0.4
    home.close()


def test_a_right_guess_is_read_once_and_a_wrong_one_is_withdrawn(tmp_path) -> None:
    gate, began = threading.Event(), threading.Event()

    def bend(number, offset, nbytes):
        began.set()
        assert gate.wait(60)

    drive = Drive(b"", bend)
    home = make_home(tmp_path, slots=6, drive=drive, depth=1)
    home.expect(2, [0, 1], certain=False)
    assert began.wait(60)
    home.expect(2, [0, 7], certain=True)
    gate.set()
    assert borrow(home, 2, [0, 7])[0] == truth(2, [0, 7])
    layout, _ = make_layout()
    withdrawn = {part.first_page for part in layout.layers[2].of(1)}
    assert not withdrawn & {offset for offset, _ in drive.calls}
    assert len(drive.calls) == 6, "two experts of three parts, each part once"
    stats = home.statistics()
    assert (stats.hits, stats.foreseen, stats.misses, stats.guess_rate) == (0, 1, 1, 0.5)
    home.close()


def test_guessing_pauses_while_most_guesses_are_wrong_and_goes_on_when_they_are_right(
    tmp_path,
) -> None:
    home = make_home(tmp_path, slots=6)
    paused = False
    for turn in range(220):
        layer = (2, 3, 5)[turn % 3]
        wanted, other = [(turn * 2) % 9, (turn * 2 + 1) % 9], [(turn * 2 + 4) % 9]
        right = turn > 80
        home.expect(layer, wanted if right else other, certain=False)
        borrow(home, layer, wanted)
        paused = paused or not home.statistics().is_guessing
        if turn == 80:
            assert paused
            assert home.statistics().guess_rate == 0.0
            assert home.statistics().wasted_guesses > 0
    stats = home.statistics()
    assert stats.is_guessing
    assert stats.guess_rate == 1.0
    assert stats.foreseen > 0
    home.close()


def test_the_budget_changes_between_and_inside_lendings(tmp_path) -> None:
    home = make_home(tmp_path, slots=12)
    size = home.statistics().slot_bytes
    borrow(home, 2, range(9))
    home.expect(3, range(9), certain=True)
    home.resize(4 * size)
    assert borrow(home, 3, range(9))[0] == truth(3, range(9))
    got = {}
    for number, some in enumerate(home.lend(5, list(range(9)))):
        home.resize((4 + 3 * (number % 2)) * size)
        got.update({o.expert: [o.gate.tobytes(), o.up.tobytes(), o.down.tobytes()] for o in some})
        home._cache.check()
    assert got == truth(5, range(9))
    home.resize(27 * size)
    borrow(home, 5, range(9))
    misses = home.statistics().misses
    borrow(home, 5, range(9))
    assert home.statistics().misses == misses
    with pytest.raises(MemoryShortError, match="too little for the experts"):
        home.resize(3 * size)
    home.close()


def test_a_loop_left_in_the_middle_gives_its_slots_back(tmp_path) -> None:
    home = make_home(tmp_path, slots=4)
    left = home.lend(2, [0, 1, 2, 3, 4])
    next(left)
    assert borrow(home, 2, range(9))[0] == truth(2, range(9))
    left.close()
    assert borrow(home, 3, range(9))[0] == truth(3, range(9))
    home.close()


def test_the_rates_are_of_the_time_with_a_read_outstanding(tmp_path) -> None:
    home = make_home(tmp_path)
    empty = home.statistics()
    assert (empty.hit_rate, empty.read_rate, empty.reads_in_flight) == (None, None, None)
    borrow(home, 2, range(9))
    stats = home.statistics()
    assert stats.bytes_read >= sum(SIZES[2]) * 9
    assert stats.read_rate == stats.bytes_read / stats.read_seconds
    assert 0 < stats.reads_in_flight <= 4
    home.close()
