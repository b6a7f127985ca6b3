"""Merge what every API saw into one list of cards: by PCI address, then uuid, then chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec

from localglm.devices import architecture as arch
from localglm.devices.answers import LinuxCards
from localglm.devices.record import (
    Card,
    FreeTrust,
    Kfd,
    Kind,
    Machine,
    ProbeResult,
    Recording,
    Sighting,
)
from localglm.devices.runtimes import runtimes_of
from localglm.devices.sightings import SOURCES, address, sightings_of

_T = TypeVar("_T")

_NAMERS = ("nvml", "windows", "torch-cuda", "torch-hip", "cuda", "hip", "opencl", "vulkan", "metal",
           "dx12", "layered", "opengl")  # fmt: skip
"""APIs whose names people know, best first; the others name a card by its numbers."""


def machine_of(recording: Recording) -> Machine:
    """Conclude what a computer has from what its probes said."""
    probes = dict(recording.probes)
    seen: list[Sighting] = []
    for name in SOURCES:
        if name in probes:
            probes[name], found = sightings_of(probes[name], recording.platform)
            seen += found
    cards = tuple(_card(group, recording) for group in grouped(seen))
    return Machine(
        platform=recording.platform,
        cards=_told_apart(cards),
        runtimes=runtimes_of(probes),
        probes=probes,
        variables=recording.variables,
        kfd=_kfd(probes.get("linux")),
    )


def grouped(seen: Sequence[Sighting]) -> list[list[Sighting]]:
    """Return the sightings card by card."""
    groups: list[list[Sighting]] = []
    for sighting in sorted(seen, key=_weakness):
        _place(groups, sighting)
    return groups


def _weakness(sighting: Sighting) -> int:
    """Order sightings: with an address, without one, and OpenGL, which has only names."""
    return 2 if sighting.api == "opengl" else int(sighting.pci_address is None)


def _place(groups: list[list[Sighting]], sighting: Sighting) -> None:
    for test in (_same_address, _same_uuid, _same_chip, _same_maker):
        fitting = [group for group in groups if any(test(one, sighting) for one in group)]
        # One API lists a card once: of several equal cards each takes one sighting.
        open_ = [g for g in fitting if all(one.api != sighting.api for one in g)]
        if open_:
            open_[0].append(sighting)
            return
    groups.append([sighting])


def _same_address(one: Sighting, other: Sighting) -> bool:
    return one.pci_address is not None and one.pci_address == other.pci_address


def _same_uuid(one: Sighting, other: Sighting) -> bool:
    return one.uuid is not None and one.uuid == other.uuid


def _same_chip(one: Sighting, other: Sighting) -> bool:
    """Whether two APIs may mean one card, going by ids, or by maker and name or chip."""
    if "software" in {one.kind, other.kind}:
        return (one.kind, one.name) == (other.kind, other.name)
    if None not in {one.pci_address, other.pci_address}:
        return False
    if one.pci_id is not None and other.pci_id is not None:
        return one.pci_id == other.pci_id
    if one.vendor is None or one.vendor != other.vendor:
        return False
    chips = (one.architecture, other.architecture)
    return chips[0] == chips[1] if None not in chips else _plain(one.name) == _plain(other.name)


def _same_maker(one: Sighting, other: Sighting) -> bool:
    """Whether OpenGL may mean a card: it decorates names, and shows one card of a maker at most."""
    is_open_gl = "opengl" in {one.api, other.api} and "software" not in {one.kind, other.kind}
    return is_open_gl and one.vendor is not None and one.vendor == other.vendor


def _plain(name: str) -> str:
    words = name.lower().replace("(r)", "").replace("(tm)", "").split("(")[0].split("/")[0].split()
    return " ".join(word for word in words if word not in {"amd", "nvidia", "intel"})


def _card(group: Sequence[Sighting], recording: Recording) -> Card:
    chip, chip_note = _chip(group, recording)
    kind = _kind(group, chip)
    pci_address = _first(group, lambda s: s.pci_address)
    uuid = _first(group, lambda s: s.uuid)
    name = _name(group)
    free, trust = _free(group)
    notes = [s.note for s in group if s.note]
    if trust == "own process":
        notes.append("its free memory counts this program alone; what others use is missing")
    return Card(
        key=pci_address or uuid or name,
        name=name,
        kind=kind,
        vendor=_first(group, lambda s: s.vendor),
        architecture=chip,
        pci_address=pci_address,
        pci_id=_first(group, lambda s: s.pci_id),
        uuid=uuid,
        memory_bytes=None if kind == "software" else _first(group, lambda s: s.memory_bytes),
        shared_bytes=_first(group, lambda s: s.shared_bytes),
        free_bytes=free,
        free_trust=trust,
        driver=_driver(group),
        apis=tuple(dict.fromkeys(s.api for s in group)),
        notes=tuple(notes + chip_note),
    )


def _first(group: Iterable[Sighting], of: Callable[[Sighting], _T | None]) -> _T | None:
    return next((value for value in map(of, group) if value is not None), None)


def _chip(group: Sequence[Sighting], recording: Recording) -> tuple[str | None, list[str]]:
    """Return the chip, from the hardware's own word before any runtime's."""
    chip = _first(group, lambda s: s.architecture)
    others = {s.api: s.architecture for s in group if s.architecture not in {None, chip}}
    forced = recording.variables.get("HSA_OVERRIDE_GFX_VERSION")
    because = f", as HSA_OVERRIDE_GFX_VERSION={forced} makes it" if forced else ""
    return chip, [f"{api} calls it {other}{because}" for api, other in others.items()]


def _kind(group: Sequence[Sighting], chip: str | None) -> Kind:
    kinds = {s.kind for s in group}
    if "software" in kinds or "display" in kinds:
        return "software" if "software" in kinds else "display"
    if chip in arch.INTEGRATED or kinds - {"unknown"} == {"integrated"}:
        return "integrated"
    return "discrete" if "discrete" in kinds else "unknown"


def _name(group: Sequence[Sighting]) -> str:
    by_api = {s.api: s.name for s in reversed(group) if s.name}
    named = [by_api[api] for api in _NAMERS if api in by_api]
    # A chip's name alone tells people nothing while another API knows the card's.
    known = [name for name in named if arch.of_gfx_text(name) != name]
    return (known or named or [group[0].name])[0]


def _driver(group: Sequence[Sighting]) -> str:
    by_api = {s.api: s.driver for s in reversed(group) if s.driver}
    order = ("nvml", "windows", "pci", *_NAMERS)
    return next((by_api[api] for api in order if api in by_api), "")


def _free(group: Sequence[Sighting]) -> tuple[int | None, FreeTrust]:
    """Return the free memory from whoever counts every program, else the next best."""
    found = [(s.free_bytes, s.free_trust) for s in group if s.free_bytes is not None]
    order: dict[FreeTrust, int] = {"card": 0, "own process": 1, "unknown": 2}
    return min(found, key=lambda pair: order[pair[1]], default=(None, "unknown"))


def _told_apart(cards: Sequence[Card]) -> tuple[Card, ...]:
    """Return the cards with keys of their own, numbered where one key names several."""
    count = Counter(card.key for card in cards)
    seen: Counter[str] = Counter()
    out = []
    for card in cards:
        seen[card.key] += 1
        is_shared = count[card.key] > 1
        key = f"{card.key} #{seen[card.key]}" if is_shared else card.key
        out.append(replace(card, key=key))
    return tuple(out)


def _kfd(result: ProbeResult | None) -> Kfd | None:
    """Return the state of AMD's compute driver, where Linux was asked for it."""
    if result is None or result.status != "ok":
        return None
    answer = msgspec.convert(result.data, LinuxCards)
    nodes = sorted(answer.kfd, key=lambda node: node.node)
    places = ((n.domain, n.location_id >> 8 & 0xFF, n.location_id >> 3 & 0x1F) for n in nodes)
    return Kfd(answer.has_kfd, answer.may_open_kfd, tuple(address(*place) for place in places))
