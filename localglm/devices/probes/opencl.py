"""Ask OpenCL for its devices. For diagnosis: nothing computes through OpenCL."""

from __future__ import annotations

from typing import Any

from localglm.devices.answers import OpenCl, OpenClDevice
from localglm.devices.probes import AbsentError


def probe() -> OpenCl:
    """List every device of every platform.

    Raises: AbsentError without the package or without any platform.
    """
    try:
        import pyopencl as cl  # noqa: PLC0415 - only in a child
    except ImportError as error:
        raise AbsentError(f"the package pyopencl cannot be imported: {error}") from error
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as error:
        if "PLATFORM_NOT_FOUND" in str(error):
            raise AbsentError("no OpenCL platform is installed") from error
        raise
    devices: list[OpenClDevice] = []
    notes: list[str] = []
    for platform in platforms:
        try:
            found = platform.get_devices()
        except cl.Error as error:
            notes.append(f"{platform.name}: {error}")
            continue
        devices += [_device(platform.name, device) for device in found]
    return OpenCl(tuple(devices), tuple(notes))


def _device(platform: str, device: Any) -> OpenClDevice:
    topology = _ask(device, "topology_amd")
    free = _ask(device, "global_free_memory_amd")
    major, minor = (_ask(device, f"compute_capability_{part}_nv") for part in ("major", "minor"))
    slot = _ask(device, "pci_slot_id_nv")
    return OpenClDevice(
        platform=platform,
        name=str(_ask(device, "name") or ""),
        vendor=str(_ask(device, "vendor") or ""),
        vendor_id=int(_ask(device, "vendor_id") or 0),
        type=int(_ask(device, "type") or 0),
        driver=str(_ask(device, "driver_version") or ""),
        board_name=_ask(device, "board_name_amd"),
        memory_bytes=_ask(device, "global_mem_size"),
        free_kib=int(free[0] if isinstance(free, list | tuple) else free) if free else None,
        pci_bus=topology.bus % 256 if topology else _ask(device, "pci_bus_id_nv"),
        # NVIDIA packs device and function into one number, as the bus does.
        pci_device=topology.device if topology else (None if slot is None else slot >> 3),
        pci_function=topology.function if topology else (None if slot is None else slot & 7),
        pci_domain=_ask(device, "pci_domain_id_nv"),
        capability=(major, minor) if major is not None and minor is not None else None,
        unified_memory=_truth(_ask(device, "host_unified_memory")),
    )


def _ask(device: Any, key: str) -> Any:
    """Return a property, or None where this driver or this pyopencl does not know it."""
    try:
        return getattr(device, key)
    except Exception:  # noqa: BLE001 - every driver refuses in its own way
        return None


def _truth(value: Any) -> bool | None:
    return None if value is None else bool(value)
