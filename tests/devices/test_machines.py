"""Recorded computers: each chooses the card, the back end and the reason that belong to it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localglm.devices.answers import Torch
from localglm.devices.candidates import Candidate
from localglm.devices.match import Choice, choose
from localglm.devices.merge import machine_of
from localglm.devices.naming import runtime_index
from localglm.devices.record import Machine
from localglm.devices.replay import recording_of
from localglm.devices.table import BACKENDS
from localglm.devices.visibility import hiding

FOLDER = Path(__file__).parent / "machines"
NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))
TODAY = ("cpu", "reference")


def load(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return data


def replayed(name: str) -> tuple[Machine, dict[str, Any]]:
    data = load(name)
    return machine_of(recording_of(data["recording"], name)), data["expect"]


def of(choice: Choice, card: str, backend: str) -> Candidate:
    return next(c for c in choice.candidates if (c.card, c.backend) == (card, backend))


def test_there_are_enough_of_them_and_each_says_what_it_is() -> None:
    assert len(NAMES) >= 25
    abouts = [load(name)["about"] for name in NAMES]
    assert len(set(abouts)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_choice_is_the_expected_one(name: str) -> None:
    machine, expect = replayed(name)
    choice = choose(machine, BACKENDS)
    best = expect["best"]
    found = (choice.backend, choice.card.key if choice.card else None)
    assert found == (best["backend"], best["card"]), choice.reason
    assert best["reason"] in choice.reason
    assert choice.runtime == best.get("runtime", choice.runtime)


@pytest.mark.parametrize("name", NAMES)
def test_this_version_says_plainly_what_it_lacks(name: str) -> None:
    machine, expect = replayed(name)
    choice = choose(machine, TODAY)
    assert (choice.backend, choice.card) == ("cpu", None)
    assert choice.best.card == expect["best"]["card"]
    if choice.best.card is not None:
        assert f"no {choice.best.backend} back end yet" in choice.reason
    assert not [c for c in choice.candidates if c.is_built and c.backend not in TODAY]


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_keeps_its_reason(name: str) -> None:
    machine, expect = replayed(name)
    choice = choose(machine, BACKENDS)
    for card, wanted in expect.get("candidates", {}).items():
        for backend, (standing, reason, *remedy) in wanted.items():
            candidate = of(choice, card, backend)
            assert candidate.standing == standing
            assert reason in candidate.reason
            assert all(part in candidate.remedy for part in remedy)
    assert all(candidate.reason for candidate in choice.candidates)
    seen = {candidate.card for candidate in choice.candidates}
    assert seen == {None, *(card.key for card in machine.cards)}


@pytest.mark.parametrize("name", NAMES)
def test_the_cards_are_merged_as_expected(name: str) -> None:
    machine, expect = replayed(name)
    found = json.loads(msgspec.json.encode(machine.cards))
    wanted = expect.get("cards")
    if wanted is not None:
        assert [card["key"] for card in wanted] == [card["key"] for card in found]
        shown = [{k: card[k] for k in want} for want, card in zip(wanted, found, strict=True)]
        assert shown == wanted
    for key, nbytes in expect.get("usable", {}).items():
        assert next(c for c in machine.cards if c.key == key).usable_bytes == nbytes


@pytest.mark.parametrize("name", NAMES)
def test_troubles_notes_and_hiding_are_the_expected_ones(name: str) -> None:
    machine, expect = replayed(name)
    status = {probe.name: probe.status for probe in machine.probes.values()}
    trouble = {n: s for n, s in status.items() if s not in {"ok", "absent"}}
    assert trouble == expect.get("trouble", {})
    if "notes" in expect:
        assert list(choose(machine, BACKENDS).notes) == expect["notes"]
    if "hiding" in expect:
        assert hiding(machine) == expect["hiding"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_drivers_list_their_cards_never_matters(name: str, seed: int) -> None:
    data = load(name)["recording"]
    chance = random.Random(seed)
    for probe in data["probes"].values():
        for part in probe.get("data", {}).values():
            if isinstance(part, list) and part and isinstance(part[0], dict):
                chance.shuffle(part)
    choice = choose(machine_of(recording_of(data)), BACKENDS)
    best = load(name)["expect"]["best"]
    found = (choice.backend, choice.card.key if choice.card else None)
    assert found == (best["backend"], best["card"])


def test_taking_device_0_would_be_wrong_where_the_processors_graphics_comes_first() -> None:
    name = "igpu-first-7900xtx-second"
    listed = msgspec.convert(load(name)["recording"]["probes"]["torch"]["data"], Torch)
    machine, _ = replayed(name)
    choice = choose(machine, BACKENDS)
    assert choice.card is not None
    assert listed.devices[0].gfx == "gfx1036"
    assert runtime_index(choice.card, listed) == 1


@pytest.mark.parametrize("name", ["h200", "two-rtx-3090"])
def test_an_index_is_looked_up_by_address(name: str) -> None:
    machine, expect = replayed(name)
    listed = msgspec.convert(machine.probes["torch"].data, Torch)
    choice = choose(machine, BACKENDS)
    assert choice.card is not None
    assert runtime_index(choice.card, listed) == expect["index"]


def test_free_memory_is_that_of_the_card_where_torch_counts_against_the_bus() -> None:
    machine, _ = replayed("two-rtx-3090")
    assert machine.cards[0].free_bytes == 20 << 30  # the first on the bus is torch's second


@pytest.mark.parametrize("name", NAMES)
def test_software_and_integrated_graphics_never_win_over_a_card(name: str) -> None:
    machine, _ = replayed(name)
    choice = choose(machine, BACKENDS)
    kinds = {card.key: card.kind for card in machine.cards}
    fitting = [c for c in choice.candidates if c.standing == "fits" and c.card is not None]
    assert not [c for c in fitting if kinds[c.card or ""] == "software"]
    if choice.card is not None and choice.card.kind == "integrated":
        assert not [c for c in fitting if kinds[c.card or ""] == "discrete"]


def test_a_measured_bandwidth_decides_between_equal_cards() -> None:
    machine, _ = replayed("two-rtx-3090")
    slow_first = {"0000:41:00.0": 500e9, "0000:61:00.0": 900e9}
    choice = choose(machine, BACKENDS, measured=slow_first)
    assert choice.card is not None
    assert choice.card.key == "0000:61:00.0"
    assert "measured faster" in choice.reason
