"""Devices present here, each opened once: the reference, and the CPU with every instruction set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from localglm.backends.cpu.device import CpuDevice
from localglm.backends.reference.device import ReferenceDevice
from localglm.ops.spec import Precision

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localglm.backends.base import Device


@dataclass(frozen=True, slots=True)
class Subject:
    """A device under test, what it computes in, and whether its bits are fixed by the contract."""

    device: Device
    precision: Precision
    has_fixed_bits: bool


def _best_isa() -> str:
    device = CpuDevice(threads=1)
    device.close()
    return device.isa


_CPUS = [("portable", 1), ("portable", 3)]
if _best_isa() != "portable":
    _CPUS += [(_best_isa(), 1), (_best_isa(), 3)]
_FIXED = [f"cpu-{isa}-{threads}" for isa, threads in _CPUS]
_SUBJECTS = ["reference", *_FIXED, "cpu exact activations"]


def _open(name: str) -> Subject:
    if name == "reference":
        return Subject(ReferenceDevice(), Precision.FLOAT64, has_fixed_bits=False)
    if name == "cpu exact activations":
        exact = CpuDevice(threads=1, exact_activations=True)
        return Subject(exact, Precision.FLOAT32, has_fixed_bits=True)
    _, isa, threads = name.split("-")
    return Subject(CpuDevice(int(threads), isa), Precision.EIGHT_BIT, has_fixed_bits=True)


@pytest.fixture(scope="session", params=_SUBJECTS)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Every device present."""
    opened = _open(request.param)
    yield opened
    opened.device.close()


@pytest.fixture(scope="session", params=_FIXED)
def fixed_bits(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Every device whose results are fixed bit by bit."""
    opened = _open(request.param)
    yield opened.device
    opened.device.close()
