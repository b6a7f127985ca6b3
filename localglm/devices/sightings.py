"""Turn each probe's answer into sightings of cards: one function per API, nothing shared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from localglm.devices import architecture as arch
from localglm.devices.answers import (
    Adapter,
    Adapters,
    DriverLibrary,
    LinuxCards,
    Nvml,
    OpenCl,
    OpenClDevice,
    RuntimeDevice,
    Torch,
    WindowsCards,
)
from localglm.devices.record import FreeTrust, Kind, Platform, ProbeResult, Sighting, Vendor

_SOFTWARE = re.compile(
    r"llvmpipe|lavapipe|softpipe|swiftshader|basic render|\bpocl\b|\bwarp\b", re.IGNORECASE
)
_OPENCL_CPU, _OPENCL_GPU = 2, 4
_LAYERED = "Microsoft Direct3D12"
_APIS = {"Vulkan": "vulkan", "Metal": "metal", "D3D12": "dx12", "OpenGL": "opengl"}

Reader: TypeAlias = Callable[[Any, Platform], Iterator[Sighting]]


def sightings_of(
    result: ProbeResult, platform: Platform
) -> tuple[ProbeResult, tuple[Sighting, ...]]:
    """Return what a probe saw; an answer of the wrong shape becomes a garbled result."""
    if result.status != "ok" or result.name not in _READERS:
        return result, ()
    kind, reader = _READERS[result.name]
    try:
        return result, tuple(reader(msgspec.convert(result.data, kind), platform))
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        said = f"its answer cannot be used: {error}"
        return ProbeResult(result.name, "garbled", result.seconds, said), ()


def address(domain: int, bus: int, device: int, function: int = 0) -> str:
    """Return a PCI address as Linux writes it: ``0000:03:00.0``."""
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def short_address(text: str) -> str | None:
    """Return the address of NVIDIA's longer form, ``00000000:01:00.0``; None where it is none."""
    found = re.fullmatch(r"0*([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])", text.lower())
    return f"{found[1]}:{found[2]}:{found[3]}.{found[4]}" if found else None


def plain_uuid(text: str | None) -> str | None:
    """Return a uuid without prefix and dashes; None for an empty one or one of zeros."""
    digits = re.sub(r"^(gpu|uuid)-|[^0-9a-z]", "", (text or "").lower())
    return digits if digits.strip("0") else None


def _kind(architecture: str | None, told: bool | None, *, fallback: Kind = "unknown") -> Kind:
    """Return integrated or discrete: the chip decides, then what the API tells."""
    if architecture in arch.INTEGRATED:
        return "integrated"
    if architecture is not None:
        return "discrete"
    return fallback if told is None else ("integrated" if told else "discrete")


def _linux(answer: LinuxCards, _platform: Platform) -> Iterator[Sighting]:
    for card in answer.pci:
        display = arch.DISPLAY_VENDORS.get(card.vendor)
        vendor = arch.VENDORS.get(card.vendor)
        chip = arch.of_pci_id(card.vendor, card.device)
        used = card.vram_used_bytes
        free = card.vram_bytes - used if card.vram_bytes is not None and used is not None else None
        ids = f"{card.vendor:04x}:{card.device:04x}"
        maker = display or (vendor or "unknown").upper()
        yield Sighting(
            api="pci",
            name=f"{maker} {chip or 'graphics'} ({ids})",
            vendor=vendor,
            architecture=chip,
            pci_address=card.address.lower(),
            pci_id=(card.vendor, card.device),
            kind="display" if display else _kind(chip, None),
            memory_bytes=card.vram_bytes,
            shared_bytes=card.gtt_bytes,
            free_bytes=free,
            free_trust="unknown" if free is None else "card",
            driver=" ".join(part for part in (card.driver, card.driver_version) if part),
            note="in an external box" if card.is_removable else "",
        )
    for node in answer.kfd:
        where = node.location_id
        chip = arch.of_gfx_version(node.gfx_target_version)
        yield Sighting(
            api="kfd",
            name=chip or "AMD graphics",
            vendor="amd",
            architecture=chip,
            pci_address=address(node.domain, where >> 8 & 0xFF, where >> 3 & 0x1F, where & 7),
            pci_id=(node.vendor, node.device) if node.vendor else None,
            uuid=f"{node.unique_id:016x}" if node.unique_id else None,
            kind=_kind(chip, None),
            memory_bytes=node.memory_bytes,
        )


def _windows(answer: WindowsCards, _platform: Platform) -> Iterator[Sighting]:
    for card in answer.cards:
        if not card.is_present:
            continue
        chip = arch.of_pci_id(card.vendor, card.device)
        is_placed = card.bus is not None and card.slot is not None
        yield Sighting(
            api="windows",
            name=card.name,
            vendor=arch.VENDORS.get(card.vendor),
            architecture=chip,
            pci_address=address(0, card.bus or 0, card.slot or 0, card.function or 0)
            if is_placed
            else None,
            pci_id=(card.vendor, card.device),
            kind="display" if card.vendor in arch.DISPLAY_VENDORS else _kind(chip, None),
            memory_bytes=card.memory_bytes,
            driver=card.driver,
        )


def _nvml(answer: Nvml, _platform: Platform) -> Iterator[Sighting]:
    for index, card in enumerate(answer.devices):
        chip = arch.of_capability(*card.capability) if card.capability else None
        chip = chip or arch.of_pci_id(0x10DE, card.pci_device_id)
        yield Sighting(
            api="nvml",
            name=card.name,
            vendor="nvidia",
            architecture=chip,
            pci_address=short_address(card.pci_address),
            pci_id=(0x10DE, card.pci_device_id) if card.pci_device_id else None,
            uuid=plain_uuid(card.uuid),
            kind=_kind(chip, None, fallback="discrete"),
            memory_bytes=card.memory_bytes,
            free_bytes=card.free_bytes,
            free_trust="unknown" if card.free_bytes is None else "card",
            driver=answer.driver,
            index=index,
            note=f"NVML: {card.problem}" if card.problem else "",
        )


def _runtime(
    api: str, vendor: Vendor, devices: tuple[RuntimeDevice, ...], trust: FreeTrust
) -> Iterator[Sighting]:
    for device in devices:
        chip = arch.of_capability(*device.capability) if device.capability else None
        chip = chip or arch.of_name(device.gfx or "")
        is_placed = device.pci_bus is not None and device.pci_device is not None
        place = address(device.pci_domain, device.pci_bus or 0, device.pci_device or 0)
        yield Sighting(
            api=api,
            name=device.name,
            vendor=vendor,
            architecture=chip,
            pci_address=place if is_placed else None,
            uuid=plain_uuid(device.uuid) if vendor == "nvidia" else None,
            kind=_kind(chip, device.is_integrated),
            memory_bytes=device.memory_bytes,
            free_bytes=device.free_bytes,
            free_trust="unknown" if device.free_bytes is None else trust,
            index=device.index,
        )


def _torch(answer: Torch, platform: Platform) -> Iterator[Sighting]:
    if answer.hip:
        # HIP on Windows counts the memory of the asking process alone.
        trust: FreeTrust = "own process" if platform.is_windows else "card"
        return _runtime("torch-hip", "amd", answer.devices, trust)
    return _runtime("torch-cuda", "nvidia", answer.devices, "card")


def _cuda(answer: DriverLibrary, _platform: Platform) -> Iterator[Sighting]:
    return _runtime("cuda", "nvidia", answer.devices, "card")


def _hip(answer: DriverLibrary, _platform: Platform) -> Iterator[Sighting]:
    return _runtime("hip", "amd", answer.devices, "unknown")


def _wgpu(answer: Adapters, _platform: Platform) -> Iterator[Sighting]:
    for index, adapter in enumerate(answer.adapters):
        api = _APIS.get(adapter.backend_type, adapter.backend_type.lower() or "wgpu")
        yield _adapter(api, adapter, index)


def _adapter(api: str, adapter: Adapter, index: int) -> Sighting:
    is_software = adapter.adapter_type == "CPU" or bool(_SOFTWARE.search(adapter.device))
    is_layered = adapter.device.startswith(_LAYERED)
    vendor = arch.VENDORS.get(adapter.vendor_id) or arch.vendor_of(adapter.device)
    is_pci = adapter.vendor_id in arch.VENDORS and adapter.device_id > 0
    chip = arch.of_pci_id(adapter.vendor_id, adapter.device_id) if is_pci else None
    chip = chip or arch.of_name(adapter.device)
    told = {"DiscreteGPU": False, "IntegratedGPU": True}.get(adapter.adapter_type)
    return Sighting(
        api="layered" if is_layered else api,
        name=adapter.device,
        vendor=None if is_software else vendor,
        architecture=None if is_software else chip,
        pci_id=(adapter.vendor_id, adapter.device_id) if is_pci and not is_software else None,
        kind="software" if is_software else _kind(chip, told),
        driver=adapter.description,
        index=index,
    )


def _opencl(answer: OpenCl, platform: Platform) -> Iterator[Sighting]:
    for index, device in enumerate(answer.devices):
        yield _opencl_device(device, platform, index)


def _opencl_device(device: OpenClDevice, platform: Platform, index: int) -> Sighting:
    text = f"{device.platform} {device.vendor} {device.board_name or ''} {device.name}"
    is_software = bool(device.type & _OPENCL_CPU) or bool(_SOFTWARE.search(text))
    # The vendor id may lie; the platform and the names are harder to get wrong.
    told = arch.vendor_of(device.platform) or arch.vendor_of(text)
    by_id = arch.VENDORS.get(device.vendor_id)
    lies = by_id is not None and (is_software or (told is not None and told != by_id))
    chip = (
        arch.of_capability(*device.capability) if device.capability else arch.of_name(device.name)
    )
    is_placed = device.pci_bus is not None and device.pci_device is not None
    place = address(
        device.pci_domain or 0, device.pci_bus or 0, device.pci_device or 0,
        device.pci_function or 0,
    )  # fmt: skip
    free = None if device.free_kib is None else device.free_kib * 1024
    trust: FreeTrust = "own process" if platform.is_windows else "card"
    return Sighting(
        api="opencl",
        name=device.board_name or device.name,
        vendor=None if is_software else told or by_id,
        architecture=None if is_software else chip,
        pci_address=place if is_placed else None,
        kind="software" if is_software else _kind(chip, device.unified_memory),
        memory_bytes=device.memory_bytes,
        free_bytes=free,
        free_trust="unknown" if free is None else trust,
        driver=device.driver,
        index=index,
        note=f"OpenCL gives it the vendor id {device.vendor_id:#06x}, which is not believed"
        if lies
        else "",
    )


_READERS: dict[str, tuple[type, Reader]] = {
    "linux": (LinuxCards, _linux),
    "windows": (WindowsCards, _windows),
    "nvml": (Nvml, _nvml),
    "torch": (Torch, _torch),
    "cuda": (DriverLibrary, _cuda),
    "hip": (DriverLibrary, _hip),
    "wgpu": (Adapters, _wgpu),
    "opencl": (OpenCl, _opencl),
}
"""The order decides whose word counts first where two APIs differ."""

SOURCES = tuple(_READERS)
