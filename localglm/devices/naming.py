"""Find the card a user names, and a card's index in the runtime that is about to use it.

A card is named by PCI address, uuid or name. An index means another card in every runtime, so none
is taken from the user and none is kept: it is looked up in the process that uses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from localglm.devices.answers import Adapters, DriverLibrary, RuntimeDevice, Torch
from localglm.devices.architecture import VENDORS
from localglm.devices.record import Card
from localglm.devices.sightings import address, plain_uuid
from localglm.errors import DeviceError

_INDEX_DIGITS = 2
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?")


def card_named(text: str, cards: Sequence[Card]) -> Card:
    """Return the card of a PCI address, a uuid, a key or a part of a name.

    Raises: DeviceError when none or several are meant, or when it is an index.
    """
    found = _by_identity(text, cards)
    if not found:
        found = _by_name(text, cards)
    if not found and text.isdigit() and len(text) <= _INDEX_DIGITS:
        raise DeviceError(
            f"--device {text} is an index",
            why="each runtime counts cards in its own order, so an index may mean any of them",
            try_=f"name the card: {_list(cards)}",
        )
    if not found:
        raise DeviceError(
            f"there is no card {text!r}",
            why=f"this computer has {_list(cards)}",
            try_="localglm backends lists them",
        )
    if len(found) > 1:
        raise DeviceError(
            f"{text!r} means {len(found)} cards",
            why=_list(found),
            try_="name one by its address",
        )
    return found[0]


def _by_identity(text: str, cards: Sequence[Card]) -> list[Card]:
    place = _ADDRESS.fullmatch(text.strip().lower())
    if place is not None:
        domain = (place[1] or "0000")[-4:]
        wanted = f"{domain}:{place[2]}:{place[3]}.{place[4] or '0'}"
        return [card for card in cards if card.pci_address == wanted]
    uuid = plain_uuid(text)
    return [
        card
        for card in cards
        if card.key.casefold() == text.strip().casefold()
        or (card.uuid is not None and card.uuid == uuid)
    ]


def _by_name(text: str, cards: Sequence[Card]) -> list[Card]:
    """Return the cards of a name, else those with the text in it; a number must be a whole word."""
    lower = text.strip().casefold()
    exact = [card for card in cards if card.name.casefold() == lower]
    if lower.isdigit():
        return [card for card in cards if lower in card.name.casefold().split()]
    return exact or [card for card in cards if lower in card.name.casefold()]


def _list(cards: Sequence[Card]) -> str:
    named = [f"{card.name} ({card.key})" if card.key != card.name else card.name for card in cards]
    return ", ".join(named) or "no card"


def runtime_index(card: Card, listed: DriverLibrary | Torch) -> int:
    """Return the card's index in CUDA's, HIP's or torch's list as this process sees it.

    Raises: DeviceError when the runtime does not list it here.
    """
    for test in (_is_placed_as, _is_identified_as):
        for device in listed.devices:
            if test(device, card):
                return device.index
    raise _not_listed(card, [device.name for device in listed.devices])


def _is_placed_as(device: RuntimeDevice, card: Card) -> bool:
    if device.pci_bus is None or device.pci_device is None:
        return False
    place = address(device.pci_domain, device.pci_bus, device.pci_device)
    return card.pci_address is not None and card.pci_address.split(".")[0] == place.split(".")[0]


def _is_identified_as(device: RuntimeDevice, card: Card) -> bool:
    return card.uuid is not None and plain_uuid(device.uuid) == card.uuid


def adapter_index(card: Card, listed: Adapters, api: str = "Vulkan", among: int = 0) -> int:
    """Return the card's index among the WebGPU adapters as this process sees them.

    WebGPU knows no PCI address: maker, device id and name decide, and of equal cards ``among`` says
    which.
    Raises: DeviceError when no adapter of ``api`` is the card.
    """
    fitting = [
        index
        for index, adapter in enumerate(listed.adapters)
        if adapter.backend_type == api
        and (
            (adapter.vendor_id, adapter.device_id) == card.pci_id
            or (adapter.device == card.name and _may_be(adapter.vendor_id, card))
        )
    ]
    if among >= len(fitting):
        raise _not_listed(card, [adapter.device for adapter in listed.adapters])
    return fitting[among]


def _may_be(vendor_id: int, card: Card) -> bool:
    return card.vendor is None or VENDORS.get(vendor_id) in {None, card.vendor}


def _not_listed(card: Card, names: Sequence[str]) -> DeviceError:
    return DeviceError(
        f"{card.name} ({card.key}) is not listed by its runtime any more",
        why=f"it lists {', '.join(names) or 'nothing'}",
        try_="localglm backends shows what is there now",
    )
