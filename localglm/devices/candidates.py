"""Judge every card with every back end that might use it, and keep the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localglm.devices.architecture import ROOMY
from localglm.devices.record import Card, Machine, Runtime
from localglm.devices.runtimes import torch_runs
from localglm.devices.table import RUNTIMES, VENDOR_BACKEND, Backend, Row, row_of
from localglm.devices.visibility import hider

Standing: TypeAlias = Literal["fits", "named only", "cannot"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One card with one back end; ``card`` is its key, None for the processor.

    ``is_built`` says whether this version of the program carries the back end.
    """

    backend: Backend
    card: str | None
    standing: Standing
    reason: str
    is_built: bool = False
    runtime: str | None = None
    remedy: str = ""


_NOT_ENOUGH = {
    "dx12": "only DirectX 12 shows it, whose shader compiler lacks what our kernels need",
    "layered": "Vulkan shows it only through DirectX 12, which lacks what our kernels need",
    "opengl": "only OpenGL shows it, which cannot run our kernels",
}


@dataclass(frozen=True, slots=True)
class _Verdict:
    runtime: str | None
    reason: str
    remedy: str = ""


def candidates_of(card: Card, machine: Machine) -> Iterator[Candidate]:
    """Yield the card's own back end, where its maker has one, and WebGPU."""
    if card.kind == "display":
        yield Candidate("wgpu", card.key, "cannot", "it only puts a picture on a screen")
        return
    own = VENDOR_BACKEND.get(card.vendor or "")
    if own is not None:
        yield _judged(card, own, _specialised(card, own, machine))
    yield _judged(card, "wgpu", _webgpu(card, machine))


def _judged(card: Card, backend: Backend, verdict: _Verdict) -> Candidate:
    """Lower the standing of what works but is not taken unasked."""
    standing: Standing = "cannot"
    reason = verdict.reason
    if verdict.runtime is not None:
        standing = "fits"
        if card.kind == "software":
            standing = "named only"
            reason = "it computes in software on the processor; used only when it is named"
        elif card.kind == "integrated" and card.architecture not in ROOMY:
            standing = "named only"
            reason = (
                f"{reason}; it shares the processor's memory and bandwidth, so it is used only"
                " when it is named"
            )
    return Candidate(backend, card.key, standing, reason, False, verdict.runtime, verdict.remedy)


def _specialised(card: Card, backend: Backend, machine: Machine) -> _Verdict:
    """Judge CUDA or HIP: kernels for the chip, access, a runtime that shows it, its age."""
    row = row_of(card.architecture)
    chip = card.architecture or "a chip that is not known"
    if row is None:
        return _Verdict(None, f"there are no {backend} kernels for {chip}")
    closed = _closed(machine) if backend == "hip" else None
    if closed is not None:
        return closed
    refusals: list[_Verdict] = []
    for name in RUNTIMES[backend]:
        verdict = _runtime(card, row, machine, name)
        if verdict.runtime is not None:
            return verdict
        refusals.append(verdict)
    told = [verdict for verdict in refusals if verdict.reason]
    if not told:
        missing = f"no {'ROCm' if backend == 'hip' else 'CUDA'} runtime is installed"
        return _Verdict(None, missing, row.remedy)
    reason = "; ".join(dict.fromkeys(verdict.reason for verdict in told))
    return _Verdict(None, reason, next((v.remedy for v in told if v.remedy), row.remedy))


def _closed(machine: Machine) -> _Verdict | None:
    """Say why AMD's compute driver in Linux cannot be used, or None where it can."""
    kfd = machine.kfd
    if machine.platform.system != "Linux" or machine.platform.is_wsl or kfd is None:
        return None
    if not kfd.is_there:
        return _Verdict(
            None,
            "Linux offers no /dev/kfd, AMD's compute driver",
            "load the amdgpu driver; in a container pass --device /dev/kfd --device /dev/dri",
        )
    if not kfd.may_open:
        return _Verdict(
            None,
            "this user may not open /dev/kfd",
            "sudo usermod -aG render,video $USER, then log in again",
        )
    return None


def _runtime(card: Card, row: Row, machine: Machine, name: str) -> _Verdict:
    runtime = machine.runtimes.get(name)
    if runtime is None:
        return _Verdict(None, "")
    chip = card.architecture or ""
    is_torch = name.startswith("torch")
    if is_torch and not torch_runs(runtime, chip):
        return _Verdict(
            None,
            f"{runtime.label} has no kernels for {chip}",
            f"install a build of torch for {chip}",
        )
    if name not in card.apis:
        return _unseen(row, machine, runtime)
    # What torch was built with says nothing of the driver, which is what loads our kernels.
    driver = machine.runtimes.get(row.backend) if is_torch and row.backend == "cuda" else runtime
    version = driver.version if driver is not None else None
    if version is not None and version < row.minimum:
        return _too_old(row, driver or runtime)
    return _Verdict(name, f"{chip} is supported by {runtime.label}")


def _too_old(row: Row, runtime: Runtime) -> _Verdict:
    have = f"driver {runtime.driver}, " if runtime.driver else ""
    need = f"{'CUDA' if row.backend == 'cuda' else 'HIP'} {row.minimum[0]}.{row.minimum[1]}"
    return _Verdict(
        None,
        f"the driver is too old ({have}{runtime.label}; our kernels need {need})",
        f"install driver {row.driver} or newer",
    )


def _unseen(row: Row, machine: Machine, runtime: Runtime) -> _Verdict:
    """Say why a runtime that is there does not show the card."""
    version = runtime.version
    if row.backend == runtime.name and version is not None and version < row.minimum:
        return _too_old(row, runtime)
    hidden = hider(row.backend, machine)
    if hidden is not None and not runtime.said.startswith("asking it"):
        return _Verdict(
            None, f"it is not shown while {hidden} is set", f"unset {hidden.partition('=')[0]}"
        )
    if runtime.said:
        return _Verdict(None, f"{runtime.label} cannot be used: {runtime.said}", row.remedy)
    return _Verdict(None, f"{runtime.label} does not list it", row.remedy)


def _webgpu(card: Card, machine: Machine) -> _Verdict:
    """Judge WebGPU: the card must be shown by Vulkan or Metal."""
    for api, name in (("vulkan", "Vulkan"), ("metal", "Metal")):
        if api in card.apis:
            return _Verdict("wgpu", f"{name} shows it, which WebGPU uses")
    runtime = machine.runtimes.get("wgpu")
    if runtime is not None and runtime.said:
        return _Verdict(None, f"WebGPU cannot be used: {runtime.said}")
    for api, reason in _NOT_ENOUGH.items():
        if api in card.apis:
            return _Verdict(None, reason, _vulkan_remedy(card, machine))
    if card.apis == ("opencl",):
        return _Verdict(None, "only OpenCL shows it, and nothing computes through OpenCL")
    return _no_vulkan(card, machine)


def _no_vulkan(card: Card, machine: Machine) -> _Verdict:
    hidden = hider("wgpu", machine)
    if hidden is not None:
        name = hidden.partition("=")[0]
        return _Verdict(None, f"no Vulkan driver shows it while {hidden} is set", f"unset {name}")
    probe = machine.probes.get("wgpu")
    is_absent = probe is not None and probe.status == "absent"
    reason = probe.said if probe is not None and is_absent else "no Vulkan driver shows it"
    return _Verdict(None, reason, _vulkan_remedy(card, machine))


def _vulkan_remedy(card: Card, machine: Machine) -> str:
    if machine.platform.system == "Linux" and card.vendor in {"amd", "intel"}:
        return "install Mesa's Vulkan drivers (mesa-vulkan-drivers)"
    return "install the display driver of the card's maker, which brings Vulkan"
