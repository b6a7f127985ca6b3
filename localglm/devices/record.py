"""What is known of a computer: answers of probes, one API's view of a card, and the merged cards.

Plain data that travels as JSON; a recording of it is enough to choose a back end again elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["ok", "absent", "failed", "crashed", "hung", "garbled"]
"""How a probe ended: ``absent`` found nothing to ask, ``garbled`` answered what is no answer."""

Vendor: TypeAlias = Literal["amd", "nvidia", "intel", "apple", "qualcomm"]
Kind: TypeAlias = Literal["discrete", "integrated", "software", "display", "unknown"]
"""``display`` drives a screen only: a server's console, the picture of a virtual machine."""

FreeTrust: TypeAlias = Literal["card", "own process", "unknown"]
"""What a figure of free memory counts: every program on the card, or the asking one alone."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What one probe answered, or why it did not."""

    name: str
    status: Status
    seconds: float = 0.0
    said: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Platform:
    """Operating system and processor type."""

    system: str
    release: str = ""
    machine: str = ""

    @property
    def is_windows(self) -> bool:
        """Whether it is Windows itself."""
        return self.system == "Windows"

    @property
    def is_wsl(self) -> bool:
        """Whether it is Linux inside Windows."""
        return self.system == "Linux" and "microsoft" in self.release.lower()


@dataclass(frozen=True, slots=True)
class Recording:
    """One computer as its probes saw it, before anything is concluded."""

    platform: Platform
    probes: Mapping[str, ProbeResult]
    variables: Mapping[str, str] = field(default_factory=dict)
    schema_version: int = 1


@dataclass(frozen=True, slots=True)
class Sighting:
    """One card as one API sees it."""

    api: str
    name: str
    vendor: Vendor | None = None
    architecture: str | None = None
    pci_address: str | None = None
    pci_id: tuple[int, int] | None = None
    uuid: str | None = None
    kind: Kind = "unknown"
    memory_bytes: int | None = None
    shared_bytes: int | None = None
    free_bytes: int | None = None
    free_trust: FreeTrust = "unknown"
    driver: str = ""
    index: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One card, from every API that sees it.

    ``memory_bytes`` is its own memory and ``shared_bytes`` what it may take of the system's.
    ``name`` is for people; ``key`` names it for good: PCI address, uuid, or name.
    """

    key: str
    name: str
    kind: Kind
    vendor: Vendor | None
    architecture: str | None
    pci_address: str | None
    pci_id: tuple[int, int] | None
    uuid: str | None
    memory_bytes: int | None
    shared_bytes: int | None
    free_bytes: int | None
    free_trust: FreeTrust
    driver: str
    apis: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def usable_bytes(self) -> int:
        """Memory to rank it by; an integrated card counts what it shares."""
        own = self.memory_bytes or 0
        return own + (self.shared_bytes or 0) if self.kind == "integrated" else own


@dataclass(frozen=True, slots=True)
class Runtime:
    """A vendor runtime as it was found: its version, the chips it was built for, what it said."""

    name: str
    is_ready: bool
    version: tuple[int, int] | None = None
    label: str = ""
    architectures: tuple[str, ...] = ()
    driver: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Kfd:
    """AMD's compute driver in Linux: whether it may be opened, and its cards in its own order."""

    is_there: bool
    may_open: bool
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Machine:
    """A computer after merging: its cards, its runtimes and what stands in their way."""

    platform: Platform
    cards: tuple[Card, ...]
    runtimes: Mapping[str, Runtime]
    probes: Mapping[str, ProbeResult]
    variables: Mapping[str, str] = field(default_factory=dict)
    kfd: Kfd | None = None
