"""Ask the CUDA and HIP driver libraries themselves, which need no torch."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, create_string_buffer
from typing import Any

from localglm.devices.answers import DriverLibrary, RuntimeDevice
from localglm.devices.probes import AbsentError

_CUDA_NAMES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
_HIP_NAMES = (
    ("amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll")
    if sys.platform == "win32"
    else ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so")
)
# Numbers of CUdevice_attribute in the driver's interface.
_BUS, _DEVICE, _DOMAIN, _INTEGRATED, _MAJOR, _MINOR = 33, 34, 50, 18, 75, 76


def cuda() -> DriverLibrary:
    """List the devices of NVIDIA's driver.

    Raises: AbsentError when the system has none.
    """
    name, library = _load(_CUDA_NAMES, "NVIDIA driver")
    version = c_int()
    library.cuDriverGetVersion(byref(version))
    code = library.cuInit(0)
    if code != 0:
        return DriverLibrary(
            name, version.value, (), f"cuInit answers {_cuda_error(library, code)}"
        )
    count = c_int()
    library.cuDeviceGetCount(byref(count))
    devices = tuple(_cuda_device(library, index) for index in range(count.value))
    return DriverLibrary(name, version.value, devices)


def hip() -> DriverLibrary:
    """List the devices of AMD's HIP runtime.

    Raises: AbsentError when the system has none.
    """
    name, library = _load(_HIP_NAMES, "HIP runtime")
    version = c_int()
    library.hipDriverGetVersion(byref(version))
    count = c_int()
    code = library.hipInit(0) or library.hipGetDeviceCount(byref(count))
    if code != 0:
        library.hipGetErrorString.restype = c_char_p
        words = library.hipGetErrorString(code) or b""
        return DriverLibrary(name, version.value, (), f"hipInit: {words.decode()} ({code})")
    devices = tuple(_hip_device(library, index) for index in range(count.value))
    return DriverLibrary(name, version.value, devices)


def _load(names: Sequence[str], what: str) -> tuple[str, ctypes.CDLL]:
    said = ""
    for name in names:
        try:
            return name, ctypes.CDLL(name)
        except OSError as error:
            said = str(error)
    raise AbsentError(f"no {what} library can be loaded ({said})")


def _cuda_error(library: ctypes.CDLL, code: int) -> str:
    text = c_char_p()
    library.cuGetErrorName(code, byref(text))
    return (text.value or b"an unknown error").decode("ascii", "replace") + f" ({code})"


def _cuda_device(library: ctypes.CDLL, index: int) -> RuntimeDevice:
    device = c_int()
    library.cuDeviceGet(byref(device), index)

    def attribute(number: int) -> int:
        value = c_int()
        library.cuDeviceGetAttribute(byref(value), number, device)
        return value.value

    name, total, uuid = create_string_buffer(256), c_size_t(), create_string_buffer(16)
    library.cuDeviceGetName(name, 256, device)
    library.cuDeviceTotalMem_v2(byref(total), device)
    known = library.cuDeviceGetUuid(uuid, device) == 0
    return RuntimeDevice(
        index=index,
        name=name.value.decode("utf-8", "replace"),
        pci_bus=attribute(_BUS),
        pci_device=attribute(_DEVICE),
        pci_domain=attribute(_DOMAIN),
        uuid=uuid.raw.hex() if known else None,
        capability=(attribute(_MAJOR), attribute(_MINOR)),
        memory_bytes=total.value,
        is_integrated=bool(attribute(_INTEGRATED)),
    )


def _hip_device(library: ctypes.CDLL, index: int) -> RuntimeDevice:
    # The structure of device properties changes with the version; these calls do not.
    device = c_int()
    library.hipDeviceGet(byref(device), index)
    name, address, total = create_string_buffer(256), create_string_buffer(32), c_size_t()
    library.hipDeviceGetName(name, 256, device)
    library.hipDeviceGetPCIBusId(address, 32, index)
    library.hipDeviceTotalMem(byref(total), device)
    domain, bus, slot = _address(address.value.decode("ascii", "replace"))
    return RuntimeDevice(
        index=index,
        name=name.value.decode("utf-8", "replace"),
        pci_bus=bus,
        pci_device=slot,
        pci_domain=domain or 0,
        memory_bytes=total.value,
    )


def _address(text: str) -> tuple[Any, Any, Any]:
    """Return domain, bus and device of ``0000:03:00.0``; None for all where it is no address."""
    try:
        domain, bus, rest = text.split(":")
        return int(domain, 16), int(bus, 16), int(rest.split(".")[0], 16)
    except ValueError:
        return None, None, None
