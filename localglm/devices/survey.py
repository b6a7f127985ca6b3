"""Ask this computer everything the choice of a device needs, in child processes."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from localglm.devices.merge import machine_of
from localglm.devices.record import Platform, ProbeResult, Recording
from localglm.devices.runner import Probe, run
from localglm.devices.visibility import hiding, known
from localglm.errors import UsageError

DEFAULT_SECONDS = 4.0
"""How long a probe may take: driver libraries answer within one second, a first import of torch
within three."""

_MODULE = "localglm.devices.probes."
_CARD_PROBES = {
    "torch": "torch_runtime:probe",
    "wgpu": "adapters:probe",
    "opencl": "opencl:probe",
    "cuda": "driver_library:cuda",
    "hip": "driver_library:hip",
    "nvml": "nvml:probe",
    "linux": "linux_cards:probe",
    "windows": "windows_cards:probe",
    "torch-package": "torch_runtime:package",
    "processor": "computer:processor",
    "memory": "computer:memory",
}
_OTHER_PROBES = {"disk": "disk:probe", "terminal": "computer:terminal"}
PROBES = (*_CARD_PROBES, *_OTHER_PROBES)
"""Every probe by name; the first ones are slow to start."""

_CRASHES = ("crashed", "hung")


def probe_named(name: str, *arguments: str, seconds: float = DEFAULT_SECONDS) -> Probe:
    """Return the probe of a name.

    Raises: UsageError when there is none.
    """
    target = (_CARD_PROBES | _OTHER_PROBES).get(name)
    if target is None:
        raise UsageError(
            f"there is no probe {name!r}",
            why=f"the probes are {', '.join(PROBES)}",
            try_="name one of these",
        )
    return Probe(name, _MODULE + target, arguments, seconds)


def card_probes(seconds: float = DEFAULT_SECONDS) -> list[Probe]:
    """Return the probes a choice needs: all but the disk and the terminal."""
    return [probe_named(name, seconds=seconds) for name in _CARD_PROBES]


def disk_probe(place: str, seconds: float = DEFAULT_SECONDS) -> Probe:
    """Return the probe that reads at a file or folder."""
    return probe_named("disk", place, seconds=seconds)


def terminal_probe(seconds: float = DEFAULT_SECONDS) -> Probe:
    """Return the probe of the terminal this process was started in."""
    size = shutil.get_terminal_size()
    shown = "yes" if sys.stdout is not None and sys.stdout.isatty() else "no"
    encoding = getattr(sys.stdout, "encoding", None) or "unknown"
    arguments = (shown, str(size.columns), str(size.lines), encoding)
    return probe_named("terminal", *arguments, seconds=seconds)


def this_platform() -> Platform:
    """Return the system this process runs on."""
    return Platform(platform.system(), platform.release(), platform.machine())


def survey(
    variables: Mapping[str, str],
    probes: Sequence[Probe] | None = None,
    search_paths: Sequence[str] = (),
    where: Platform | None = None,
) -> Recording:
    """Run the probes side by side and keep what they said.

    A runtime of AMD's that dies is asked once more with the chips hidden that it was not built for.
    """
    asked = card_probes() if probes is None else list(probes)
    found = run(asked, search_paths)
    recording = Recording(where or this_platform(), found, known(variables))
    again = _once_more(asked, recording)
    if not again:
        return recording
    second = run(again, search_paths)
    merged = {name: _joined(found[name], second.get(name)) for name in found}
    return replace(recording, probes=merged)


def _once_more(asked: Sequence[Probe], recording: Recording) -> list[Probe]:
    """Return the AMD runtimes that died, with the variables that hide what may have killed them."""
    died = [p for p in asked if p.name in {"torch", "hip"}]
    died = [p for p in died if recording.probes[p.name].status in _CRASHES]
    hidden = hiding(machine_of(recording)) if died else {}
    return [replace(probe, variables=hidden) for probe in died] if hidden else []


def _joined(first: ProbeResult, second: ProbeResult | None) -> ProbeResult:
    if second is None:
        return first
    told = f"{first.status} while every chip was visible ({first.said})"
    if second.status in _CRASHES:
        return replace(second, said=f"{told}; and again with the others hidden: {second.said}")
    said = f"{told}; answered with the others hidden"
    return replace(second, said=f"{said}: {second.said}" if second.said else said)
