"""Read the display adapters from the Windows registry: names, ids, memory, places on the bus."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Protocol

from localglm.devices.answers import WindowsCard, WindowsCards
from localglm.devices.probes import AbsentError

_CLASS = "{4d36e968-e325-11ce-bfc1-08002be10318}"
_ADAPTERS = rf"SYSTEM\CurrentControlSet\Control\Class\{_CLASS}"
_BUS = r"SYSTEM\CurrentControlSet\Enum\PCI"
_SERVICES = r"SYSTEM\CurrentControlSet\Services"
_IDS = re.compile(r"VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})", re.IGNORECASE)
_PLACE = re.compile(r"\((\d+),(\d+),(\d+)\)\s*$")


class Registry(Protocol):
    """Keys under the local machine, read only."""

    def keys(self, path: str) -> list[str]:
        """Return the names below a key; none where it may not be read."""
        ...

    def values(self, path: str) -> dict[str, object]:
        """Return the values of a key by name; none where it may not be read."""
        ...


class WindowsRegistry:
    """The registry of this system."""

    def keys(self, path: str) -> list[str]:
        """Return the names below a key."""
        if sys.platform == "win32":
            import winreg  # noqa: PLC0415 - only on Windows

            try:
                with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                    count = winreg.QueryInfoKey(key)[0]
                    return [winreg.EnumKey(key, index) for index in range(count)]
            except OSError:
                return []
        return []

    def values(self, path: str) -> dict[str, object]:
        """Return the values of a key by name."""
        if sys.platform == "win32":
            import winreg  # noqa: PLC0415 - only on Windows

            try:
                with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                    count = winreg.QueryInfoKey(key)[1]
                    return {n: v for n, v, _ in (winreg.EnumValue(key, i) for i in range(count))}
            except OSError:
                return {}
        return {}


def probe() -> WindowsCards:
    """List the display adapters.

    Raises: AbsentError on another system.
    """
    if sys.platform == "win32":
        return read(WindowsRegistry())
    raise AbsentError("this system is not Windows")


def read(registry: Registry) -> WindowsCards:
    """List the display adapters of a registry, those in the computer first."""
    places = dict(_places(registry))
    cards = []
    for name in registry.keys(_ADAPTERS):
        values = registry.values(rf"{_ADAPTERS}\{name}")
        ids = _IDS.search(str(values.get("MatchingDeviceId", "")))
        if not name.isdigit() or ids is None:
            continue
        place = places.get(rf"{_CLASS}\{name}".lower())
        bus, slot, function = place or (None, None, None)
        cards.append(
            WindowsCard(
                name=str(values.get("DriverDesc", "")),
                vendor=int(ids[1], 16),
                device=int(ids[2], 16),
                driver=str(values.get("DriverVersion", "")),
                memory_bytes=_size(values),
                bus=bus,
                slot=slot,
                function=function,
                is_present=place is not None,
            )
        )
    return WindowsCards(tuple(sorted(cards, key=lambda card: not card.is_present)))


def _places(registry: Registry) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield the adapter key and the place on the bus of every device that is there now.

    The registry keeps devices that were taken out; a service lists those that run.
    """
    for model in registry.keys(_BUS):
        for instance in registry.keys(rf"{_BUS}\{model}"):
            values = registry.values(rf"{_BUS}\{model}\{instance}")
            driver = str(values.get("Driver", "")).lower()
            place = _PLACE.search(str(values.get("LocationInformation", "")))
            if not driver.startswith(_CLASS) or place is None:
                continue
            running = registry.values(rf"{_SERVICES}\{values.get('Service', '')}\Enum").values()
            if rf"PCI\{model}\{instance}".lower() in {str(value).lower() for value in running}:
                yield driver, (int(place[1]), int(place[2]), int(place[3]))


def _size(values: dict[str, object]) -> int | None:
    """Return the card's memory; the older value has 32 bits and stops at 4 GiB."""
    for name in ("HardwareInformation.qwMemorySize", "HardwareInformation.MemorySize"):
        value = values.get(name)
        if isinstance(value, bytes) and value:
            value = int.from_bytes(value, "little")
        if isinstance(value, int) and value > 0:
            return value
    return None
