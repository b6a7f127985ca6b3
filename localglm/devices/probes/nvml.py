"""Ask NVIDIA's management library, which sees every card whatever the program may use."""

from __future__ import annotations

from typing import Any

from localglm.devices.answers import Nvml, NvmlDevice
from localglm.devices.probes import AbsentError


def probe() -> Nvml:
    """List NVIDIA's cards and the driver.

    Raises: AbsentError without the package or the driver.
    """
    try:
        import pynvml  # noqa: PLC0415 - only in a child
    except ImportError as error:
        raise AbsentError(f"the package nvidia-ml-py cannot be imported: {error}") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound as error:
        raise AbsentError("no NVIDIA driver is installed") from error
    return Nvml(
        driver=_text(pynvml.nvmlSystemGetDriverVersion()),
        cuda_version=_try(pynvml.nvmlSystemGetCudaDriverVersion_v2),
        devices=tuple(_device(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())),
    )


def _device(pynvml: Any, index: int) -> NvmlDevice:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        # A card that fell off the bus still counts, and has no handle.
        return NvmlDevice(name="NVIDIA card", pci_address="", problem=str(error))
    pci = pynvml.nvmlDeviceGetPciInfo(handle)
    memory = _try(pynvml.nvmlDeviceGetMemoryInfo, handle)
    capability = _try(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    display = _try(pynvml.nvmlDeviceGetDisplayActive, handle)
    return NvmlDevice(
        name=_text(_try(pynvml.nvmlDeviceGetName, handle) or "NVIDIA card"),
        pci_address=_text(pci.busId),
        uuid=_text(_try(pynvml.nvmlDeviceGetUUID, handle) or ""),
        pci_device_id=int(pci.pciDeviceId) >> 16,
        capability=None if capability is None else (int(capability[0]), int(capability[1])),
        memory_bytes=None if memory is None else int(memory.total),
        used_bytes=None if memory is None else int(memory.used),
        free_bytes=None if memory is None else int(memory.free),
        is_display_attached=None if display is None else bool(display),
    )


def _try(call: Any, *arguments: Any) -> Any:
    """Return what NVML answers, or None where a card does not support the question."""
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001 - one class of error per question and version
        return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
