"""Environment variables that change which cards a runtime shows, and hiding cards on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from localglm.devices.record import Card, Machine, Vendor
from localglm.devices.table import HIP_ARCHITECTURES


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, the runtime it concerns and what it does."""

    name: str
    runtime: str
    effect: str


VARIABLES = (
    Variable("CUDA_VISIBLE_DEVICES", "cuda", "only the cards it names are shown to CUDA"),
    Variable("CUDA_DEVICE_ORDER", "cuda",
             "changes CUDA's numbering; nothing follows, cards are named by PCI address here"),
    Variable("NVIDIA_VISIBLE_DEVICES", "cuda",
             "only the cards it names were put into this container"),
    Variable("HIP_VISIBLE_DEVICES", "hip", "only the cards it names are shown to HIP"),
    Variable("ROCR_VISIBLE_DEVICES", "hip", "only the cards it names are shown to ROCm"),
    Variable("GPU_DEVICE_ORDINAL", "hip", "only the cards it numbers are shown to HIP"),
    Variable("HSA_OVERRIDE_GFX_VERSION", "hip",
             "ROCm takes every chip for this one; kernels for the real chip may not load"),
    Variable("HSA_ENABLE_DXG_DETECTION", "hip", "lets ROCm find cards inside WSL"),
    Variable("VK_DRIVER_FILES", "wgpu", "only these Vulkan drivers are loaded"),
    Variable("VK_ICD_FILENAMES", "wgpu", "only these Vulkan drivers are loaded"),
    Variable("VK_LOADER_DRIVERS_SELECT", "wgpu", "only Vulkan drivers of these names are loaded"),
    Variable("VK_LOADER_DRIVERS_DISABLE", "wgpu", "Vulkan drivers of these names are left out"),
    Variable("MESA_VK_DEVICE_SELECT", "wgpu",
             "Mesa puts this card first, or shows it alone when it ends in '!'"),
    Variable("DRI_PRIME", "wgpu", "Mesa puts another card first; nothing follows here"),
    Variable("LIBGL_ALWAYS_SOFTWARE", "wgpu", "OpenGL draws on the processor"),
    Variable("WGPU_BACKEND", "wgpu", "names one graphics API for WebGPU"),
    Variable("WGPU_BACKEND_TYPE", "wgpu", "names one graphics API for WebGPU"),
    Variable("OCL_ICD_VENDORS", "opencl",
             "OpenCL drivers are looked for there; nothing computes through OpenCL"),
)  # fmt: skip

_HIDERS: dict[str, tuple[str, ...]] = {
    "cuda": ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    "hip": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
            "CUDA_VISIBLE_DEVICES"),
    "wgpu": ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT",
             "VK_LOADER_DRIVERS_DISABLE", "MESA_VK_DEVICE_SELECT", "WGPU_BACKEND",
             "WGPU_BACKEND_TYPE"),
}  # fmt: skip
"""Variables that can take a card away from a back end; HIP reads CUDA's as well."""

_MAKERS: dict[str, Vendor] = {"cuda": "nvidia", "hip": "amd"}


def known(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of the variables that concern the choice of a card."""
    return {v.name: variables[v.name] for v in VARIABLES if v.name in variables}


def explained(machine: Machine) -> tuple[str, ...]:
    """Return one line per variable that is set and concerns a card of this computer."""
    makers = {card.vendor for card in machine.cards}
    lines = []
    for variable in VARIABLES:
        value = machine.variables.get(variable.name)
        runtime = variable.runtime
        if value is not None and (runtime not in _MAKERS or _MAKERS[runtime] in makers):
            lines.append(f"{variable.name}={value}: {variable.effect}")
    return tuple(lines)


def hider(backend: str, machine: Machine) -> str | None:
    """Return ``NAME=value`` of a variable that may hide cards from a back end, if one is set."""
    for name in _HIDERS.get(backend, ()):
        value = machine.variables.get(name)
        if value is not None and not (name == "NVIDIA_VISIBLE_DEVICES" and value == "all"):
            return f"{name}={value}"
    return None


def hiding(machine: Machine, wanted: Card | None = None) -> dict[str, str]:
    """Return the variables that leave HIP one set of chips to start with, before it starts.

    ROCm on Linux fails or crashes while it sees a chip it has no kernels for, most often the
    processor's own graphics beside a card. With ``wanted`` that card alone stays. Elsewhere, and
    where the user has set such a variable, nothing is hidden: cards are told apart by their
    properties.
    """
    if machine.platform.system != "Linux" or any(v in machine.variables for v in _HIDERS["hip"]):
        return {}
    order = [card for card in _rocm_order(machine) if card.vendor == "amd"]
    fit = [card for card in order if card.architecture in HIP_ARCHITECTURES]
    # An integrated chip may be the one that breaks the runtime even where it has kernels.
    fit = [card for card in fit if card.kind != "integrated"] or fit
    keep = fit if wanted is None else [card for card in fit if card.key == wanted.key]
    if not keep or len(keep) == len(order):
        return {}
    return {"ROCR_VISIBLE_DEVICES": ",".join(str(order.index(card)) for card in keep)}


def _rocm_order(machine: Machine) -> list[Card]:
    """Return the cards of AMD's compute driver in the order ROCm counts them: by node."""
    nodes = machine.kfd.order if machine.kfd else ()
    by_address = {card.pci_address: card for card in machine.cards}
    return [by_address[address] for address in nodes if address in by_address]
