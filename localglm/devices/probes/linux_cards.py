"""Read the cards from Linux itself: the PCI bus, AMD's compute driver and who may open what."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from localglm.devices.answers import KfdNode, LinuxCards, PciDevice
from localglm.devices.probes import AbsentError

_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")  # VGA, 3D, other display, accelerator
_LOCAL_HEAPS = {1, 2}  # memory of the card, as the processor may or may not see it


def probe(root: str = "/") -> LinuxCards:
    """List display and accelerator functions of the bus and the nodes of AMD's driver.

    Raises: AbsentError on another system.
    """
    if not sys.platform.startswith("linux") and root == "/":
        raise AbsentError("this system is not Linux")
    top = Path(root)
    kfd = top / "dev/kfd"
    nodes = sorted((top / "dev/dri").glob("renderD*"))
    closed = [node for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    return LinuxCards(
        pci=tuple(_pci_devices(top)),
        kfd=tuple(_kfd_nodes(top)),
        has_kfd=kfd.exists(),
        may_open_kfd=os.access(kfd, os.R_OK | os.W_OK),
        render_nodes=tuple(node.name for node in nodes),
        closed_render_nodes=tuple(node.name for node in closed),
        has_dxg=(top / "dev/dxg").exists(),
    )


def _pci_devices(top: Path) -> list[PciDevice]:
    found = []
    for folder in sorted((top / "sys/bus/pci/devices").glob("*")):
        vendor, device = _number(folder / "vendor"), _number(folder / "device")
        if vendor is None or device is None or not _text(folder / "class").startswith(_CLASSES):
            continue
        driver = (folder / "driver").resolve().name if (folder / "driver").exists() else ""
        found.append(
            PciDevice(
                address=folder.name,
                vendor=vendor,
                device=device,
                driver=driver,
                driver_version=_text(top / "sys/module" / driver / "version") if driver else "",
                is_boot_display=_text(folder / "boot_vga") == "1",
                vram_bytes=_number(folder / "mem_info_vram_total"),
                vram_used_bytes=_number(folder / "mem_info_vram_used"),
                gtt_bytes=_number(folder / "mem_info_gtt_total"),
                is_removable=_text(folder / "removable") == "removable",
            )
        )
    return found


def _kfd_nodes(top: Path) -> list[KfdNode]:
    found = []
    for folder in (top / "sys/class/kfd/kfd/topology/nodes").glob("*"):
        facts = _properties(folder / "properties")
        if not facts.get("simd_count"):
            continue  # a processor
        banks = [_properties(bank / "properties") for bank in folder.glob("mem_banks/*")]
        local = [b.get("size_in_bytes", 0) for b in banks if b.get("heap_type") in _LOCAL_HEAPS]
        found.append(
            KfdNode(
                node=int(folder.name),
                gfx_target_version=facts.get("gfx_target_version", 0),
                location_id=facts.get("location_id", 0),
                domain=facts.get("domain", 0),
                vendor=facts.get("vendor_id", 0),
                device=facts.get("device_id", 0),
                unique_id=facts.get("unique_id", 0),
                simd_count=facts["simd_count"],
                memory_bytes=sum(local) if local else None,
            )
        )
    return sorted(found, key=lambda node: node.node)


def _properties(path: Path) -> dict[str, int]:
    """Return the ``name number`` lines of a file; one that may not be read has none."""
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(_text(path), 0)
    except ValueError:
        return None
