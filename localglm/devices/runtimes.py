"""What each vendor runtime is like on this computer: present, how new, built for which chips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from localglm.devices.answers import Adapters, DriverLibrary, Nvml, Torch, TorchPackage
from localglm.devices.record import ProbeResult, Runtime

_T = TypeVar("_T")
_DIED = {"crashed": "crashed", "hung": "hung", "garbled": "gave no usable answer",
         "failed": "failed"}  # fmt: skip


def runtimes_of(probes: Mapping[str, ProbeResult]) -> dict[str, Runtime]:
    """Return the runtimes that are there or went wrong: cuda, hip, torch-cuda, torch-hip, wgpu."""
    return {runtime.name: runtime for runtime in _all(probes)}


def _all(probes: Mapping[str, ProbeResult]) -> Iterator[Runtime]:
    nvml = answer_of(probes.get("nvml"), Nvml)
    driver = nvml.driver if nvml else ""
    for name, scale in (("cuda", 1000), ("hip", 10_000_000)):
        yield from _driver(name, probes.get(name), scale, driver if name == "cuda" else "")
    yield from _torch(probes.get("torch"), probes.get("torch-package"))
    yield from _wgpu(probes.get("wgpu"))


def answer_of(result: ProbeResult | None, kind: type[_T]) -> _T | None:
    """Return a probe's answer as its record, or None where it has none."""
    if result is None or result.status != "ok":
        return None
    try:
        return msgspec.convert(result.data, kind)
    except msgspec.ValidationError:
        return None


def _driver(name: str, result: ProbeResult | None, scale: int, driver: str) -> Iterator[Runtime]:
    answer = answer_of(result, DriverLibrary)
    if answer is None:
        yield from _gone_wrong(name, result)
        return
    version = _version(answer.version, scale)
    words = {"cuda": "CUDA", "hip": "HIP"}[name]
    label = f"{words} {version[0]}.{version[1]}" if version else words
    ready = not answer.problem and bool(answer.devices)
    said = answer.problem or ("" if answer.devices else "it lists no device")
    yield Runtime(name, ready, version, label, (), driver, said)


def _version(number: int, scale: int) -> tuple[int, int] | None:
    """Return major and minor of a driver's number: 12080 for CUDA, 60340043 for HIP."""
    if number <= 0:
        return None
    part = scale // 100
    return number // scale, number % scale // part


def _torch(result: ProbeResult | None, package: ProbeResult | None) -> Iterator[Runtime]:
    answer = answer_of(result, Torch)
    installed = answer_of(package, TorchPackage)
    if answer is None:
        version = installed.version if installed else ""
        if "+cpu" not in version:
            name = "torch-hip" if "rocm" in version else "torch-cuda"
            yield from _gone_wrong(name, result, f"torch {version}".strip())
        return
    built = answer.hip or answer.cuda or ""
    major, _, rest = built.partition(".")
    minor = rest.partition(".")[0]
    number = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
    label = f"torch {answer.version}" + (f" for {'ROCm' if answer.hip else 'CUDA'} {built}")
    ready = not answer.problem and bool(answer.devices)
    said = answer.problem or ("" if answer.devices else "it lists no device")
    name = "torch-hip" if answer.hip else "torch-cuda"
    yield Runtime(name, ready, number, label, answer.architectures, "", said)


def _wgpu(result: ProbeResult | None) -> Iterator[Runtime]:
    answer = answer_of(result, Adapters)
    if answer is None:
        yield from _gone_wrong("wgpu", result)
        return
    ready = any(a.backend_type in {"Vulkan", "Metal"} for a in answer.adapters)
    yield Runtime("wgpu", ready, None, f"wgpu {answer.version}".strip())


def _gone_wrong(name: str, result: ProbeResult | None, label: str = "") -> Iterator[Runtime]:
    """Yield a runtime that could not be asked; one that is not there at all yields nothing."""
    if result is None or result.status == "absent":
        return
    said = f"asking it {_DIED.get(result.status, 'failed')}: {result.said}"
    yield Runtime(name, is_ready=False, label=label or name, said=said)


def torch_runs(runtime: Runtime, architecture: str) -> bool:
    """Whether a build of torch has kernels for a chip.

    NVIDIA's run on later chips of the same generation, and translated ones on every later chip.
    """
    if not runtime.architectures:
        return True
    if architecture in runtime.architectures:
        return True
    wanted = _number(architecture)
    for known in runtime.architectures:
        number = _number(known)
        if wanted is None or number is None:
            continue
        if known.startswith("compute_") and number <= wanted:
            return True
        if known.startswith("sm_") and number // 10 == wanted // 10 and number <= wanted:
            return True
    return False


def _number(architecture: str) -> int | None:
    head, _, digits = architecture.partition("_")
    return int(digits) if head in {"sm", "compute"} and digits.isdigit() else None
