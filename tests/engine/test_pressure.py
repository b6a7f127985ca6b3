"""Giving memory back while it is short, at injected readings and times."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import engine_toy as toy

from localglm.engine import protocol as p
from localglm.engine.control import Control, Status
from localglm.engine.pressure import ExpertCacheMemory, Pressure, spare_memory
from localglm.engine.service import Service

MIB = 1 << 20


@dataclass
class Computer:
    """Readings and a clock, and states that can be forgotten."""

    spare: int = 1000 * MIB
    now: float = 0.0
    points: int = 0
    budgets: list[int] = field(default_factory=list)

    def drop(self) -> int:
        dropped, self.points = self.points, 0
        return dropped

    def pressure(self, memory: int = 800 * MIB) -> Pressure:
        cache = ExpertCacheMemory(self.budgets.append, memory, 100 * MIB)
        return Pressure(cache, self.drop, lambda: self.spare, lambda: self.now)


def looked(computer: Computer, pressure: Pressure, spare: int, seconds: float = 1.0) -> list[str]:
    computer.now += seconds
    computer.spare = spare
    return pressure.relieve()


def test_with_enough_memory_nothing_happens() -> None:
    computer = Computer(points=3)
    pressure = computer.pressure()
    assert looked(computer, pressure, 0) == []
    assert computer.budgets == []
    assert computer.points == 3


def test_old_states_go_first_and_the_cache_follows_when_that_was_not_enough() -> None:
    computer = Computer(points=3)
    pressure = computer.pressure()
    assert "places to go back to were forgotten (3)" in looked(computer, pressure, -50 * MIB)[0]
    assert computer.budgets == []
    looked(computer, pressure, -30 * MIB)
    assert computer.budgets == [770 * MIB]
    computer.points = 1
    assert looked(computer, pressure, -1) == []  # the same shortage is told once
    assert computer.points == 0


def test_the_cache_gives_back_what_lacks_but_not_the_least() -> None:
    computer = Computer()
    pressure = computer.pressure()
    (note,) = looked(computer, pressure, -200 * MIB)
    assert "experts keep 600.0 MiB" in note
    assert looked(computer, pressure, -2000 * MIB) == []  # the same shortage is told once
    assert computer.budgets == [600 * MIB, 100 * MIB]
    looked(computer, pressure, -2000 * MIB)
    assert computer.budgets == [600 * MIB, 100 * MIB]
    assert pressure.shortages == 1


def test_it_grows_again_slowly_after_a_calm_while_and_never_beyond_the_plan() -> None:
    computer = Computer()
    pressure = computer.pressure()
    looked(computer, pressure, -400 * MIB)
    looked(computer, pressure, 300 * MIB)
    assert computer.budgets == [400 * MIB]  # not at once, or it would swing
    looked(computer, pressure, 300 * MIB, seconds=10.0)
    assert computer.budgets[1:] == [550 * MIB]  # half of what is spare
    looked(computer, pressure, 5000 * MIB)
    assert computer.budgets[2:] == [800 * MIB]
    looked(computer, pressure, 5000 * MIB, seconds=100.0)
    assert computer.budgets[3:] == []


def test_a_second_shortage_is_told_and_counted_again() -> None:
    computer = Computer()
    pressure = computer.pressure()
    looked(computer, pressure, -1 * MIB)
    looked(computer, pressure, 900 * MIB, seconds=20.0)
    assert computer.budgets[-1] == 800 * MIB
    assert looked(computer, pressure, -1 * MIB) != []
    assert pressure.shortages == 2


def test_readings_are_taken_a_few_times_a_second_at_most() -> None:
    computer = Computer(points=1)
    pressure = computer.pressure()
    looked(computer, pressure, 0)
    assert looked(computer, pressure, -100 * MIB, seconds=0.1) == []
    assert computer.points == 1
    assert looked(computer, pressure, -100 * MIB, seconds=0.5) != []


def test_without_a_cache_a_shortage_is_told_once() -> None:
    computer = Computer()
    pressure = Pressure(None, computer.drop, lambda: -1, lambda: computer.now)
    assert len(looked(computer, pressure, -1)) == 1
    assert looked(computer, pressure, -1) == []
    assert pressure.shortages == 1


def test_this_computer_can_be_read() -> None:
    assert isinstance(spare_memory(), int)


def test_a_request_goes_on_under_pressure_and_tells_of_it(toy_file: Any) -> None:
    between: list[int] = []
    sent: list[p.Event] = []
    service = Service(toy.open_toy, sent.append, Status(), lambda: between.append(1))
    path = str(toy_file())
    service.obey(p.OpenModel(request=1, path=path, chunk=4), Control())
    table = service._open_table()

    def ask(text: str) -> p.Event:
        sent.clear()
        prompt = p.TextPrompt(text)
        service.obey(p.Generate(request=2, prompt=prompt, max_tokens=4), Control())
        return sent[-1]

    calm = [ask(text) for text in ("abcdefgh", "abcdefghijklmnop")]
    session = table.sessions.get("main")
    assert not [event for event in sent if isinstance(event, p.Notice)]
    assert session.point_count > 1
    table.pressure.spare = lambda: -1
    table.pressure.clock, table.pressure._looked = itertools.count().__next__, None
    done = ask("abcdefghijklmnopqrstuvwxyz")
    notices = [event.text for event in sent if isinstance(event, p.Notice)]
    assert len(notices) == 1
    assert "memory is short" in notices[0]
    assert session.point_count <= 2
    assert table.pressure.shortages == 1
    assert isinstance(done, p.Done)
    assert all(isinstance(event, p.Done) for event in calm)
    assert between  # short requests are still answered


def test_a_resting_engine_gives_memory_back_and_tells_of_it_later(toy_file: Any) -> None:
    sent: list[p.Event] = []
    service = Service(toy.open_toy, sent.append, Status())
    service.rest()  # without a model there is nothing to give
    service.obey(p.OpenModel(request=1, path=str(toy_file())), Control())
    pressure = service._open_table().pressure
    computer = Computer(spare=-10 * MIB)
    pressure.cache = ExpertCacheMemory(computer.budgets.append, 800 * MIB, 100 * MIB)
    pressure.spare = lambda: computer.spare
    service.rest()
    assert computer.budgets == [790 * MIB]
    computer.spare = 0
    sent.clear()
    prompt = p.TextPrompt("abc")
    service.obey(p.Generate(request=2, prompt=prompt, max_tokens=3), Control())
    (notice,) = [event for event in sent if isinstance(event, p.Notice)]
    assert "experts keep 790.0 MiB" in notice.text
