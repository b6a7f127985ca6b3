"""Ask torch for its CUDA or HIP devices, and its package for the version without starting it."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from localglm.devices.answers import RuntimeDevice, Torch, TorchPackage
from localglm.devices.probes import AbsentError


def package() -> TorchPackage:
    """Return the installed version, which names the build: ``2.14.1+rocm7.2``.

    Raises: AbsentError when torch is not installed.
    """
    try:
        return TorchPackage(metadata.version("torch"))
    except metadata.PackageNotFoundError as error:
        raise AbsentError("torch is not installed") from error


def probe() -> Torch:
    """Import torch and list its devices.

    Raises: AbsentError when torch is not installed or is a build for the processor.
    """
    installed = package().version
    import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only in a child

    cuda, hip = torch.version.cuda, getattr(torch.version, "hip", None)
    if not cuda and not hip:
        raise AbsentError(f"torch {installed} is a build for the processor only")
    problem, count = "", 0
    try:
        # init tells why; is_available only tells that it does not work.
        torch.cuda.init()
        count = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    devices = tuple(_device(torch, index) for index in range(count))
    built_for = tuple(torch.cuda.get_arch_list()) if not problem else ()
    return Torch(installed, cuda, hip, built_for, devices, problem)


def _device(torch: Any, index: int) -> RuntimeDevice:
    facts = torch.cuda.get_device_properties(index)
    gfx = getattr(facts, "gcnArchName", None) if torch.version.hip else None
    free: int | None
    try:
        free = int(torch.cuda.mem_get_info(index)[0])
    except RuntimeError:
        free = None
    uuid = getattr(facts, "uuid", None)
    return RuntimeDevice(
        index=index,
        name=str(facts.name),
        pci_bus=getattr(facts, "pci_bus_id", None),
        pci_device=getattr(facts, "pci_device_id", None),
        pci_domain=getattr(facts, "pci_domain_id", 0),
        uuid=None if uuid is None else str(uuid),
        capability=None if torch.version.hip else (int(facts.major), int(facts.minor)),
        gfx=gfx,
        memory_bytes=int(facts.total_memory),
        free_bytes=free,
        is_integrated=bool(getattr(facts, "is_integrated", 0)) or None,
    )
