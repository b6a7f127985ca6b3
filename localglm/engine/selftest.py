"""The self-test in the engine process: ops, probes of arithmetic, and a model with known logits.

Every part is announced before it runs and reported after, so that a front end knows which part a
device died in.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from localglm.backends.base import Device
from localglm.engine import protocol as p
from localglm.engine.control import Control, Status
from localglm.engine.devices import DeviceChoice
from localglm.engine.selftest_model import logits_over
from localglm.engine.selftest_probes import PROBES
from localglm.engine.selftest_products import block_products
from localglm.errors import LocalGlmError, UsageError
from localglm.ops.registry import OPS
from localglm.ops.spec import Case, OpSpec, Precision

DeviceOpener: TypeAlias = Callable[[DeviceChoice], Device]
_NUMBER = re.compile(r"\b\d[\dx.]*")


@dataclass(frozen=True, slots=True)
class Bench:
    """What a self-test reports to, and who may stop it."""

    request: p.SelfTest
    send: Callable[[p.Event], None]
    status: Status
    control: Control


@dataclass(frozen=True, slots=True)
class _Part:
    kind: p.PartKind
    name: str
    runs: Callable[[], Iterator[tuple[str, float]]]


def run(bench: Bench, opener: DeviceOpener) -> p.SelfTested:
    """Open the device of the request, run every part on it and close it.

    Raises: UsageError for a device the back end cannot be told to use; DeviceError when it does
    not start.
    """
    request = bench.request
    if request.device is not None:
        raise UsageError(
            f"the back end {request.backend} has no device {request.device!r}",
            why="it computes on the processor",
            try_="leave the device out",
        )
    bench.status.tick("opening the device")
    device = opener(DeviceChoice(request.backend, request.threads))
    try:
        parts = _parts(device, request)
        for done, part in enumerate(parts):
            if bench.control.is_cancelled or not _run_part(bench, part, done, len(parts)):
                return _ended(request, device, is_complete=False)
        return _ended(request, device, is_complete=True)
    finally:
        device.close()


def precision_of(backend: str) -> Precision:
    """Return what a back end computes in."""
    return Precision.FLOAT64 if backend == "reference" else Precision.EIGHT_BIT


def chosen(cases: list[Case], level: p.TestLevel) -> list[Case]:
    """Return all cases, or for ``quick`` the first and the last of each kind.

    A kind is the label without its numbers: it keeps the storage type, ties, and other choices.
    """
    if level == "full":
        return cases
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        kinds.setdefault(_NUMBER.sub("", case.label), []).append(case)
    ends = [kind[i] for kind in kinds.values() for i in (0, -1)]
    return list({case.label: case for case in ends}.values())


def _parts(device: Device, request: p.SelfTest) -> list[_Part]:
    precision = precision_of(request.backend)
    ops = [_op_part(device, spec, request.level, precision) for spec in OPS]
    probes = [
        _Part("arithmetic", probe.name, _once(probe.name, lambda run=probe.run: run(device)))  # type: ignore[misc]
        for probe in PROBES
        if precision is not Precision.FLOAT64
    ]
    if precision is Precision.EIGHT_BIT:
        probes.append(_Part("arithmetic", "block products", lambda: block_products(device)))
    model = _once("every position", lambda: logits_over(device, precision))
    return [*ops, *probes, _Part("model", "known logits", model)]


def _op_part(device: Device, spec: OpSpec, level: p.TestLevel, precision: Precision) -> _Part:
    def runs() -> Iterator[tuple[str, float]]:
        for case in chosen(spec.cases(), level):
            yield case.label, spec.excess(spec.perform(device, case.arguments), case, precision)

    return _Part("op", spec.name, runs)


def _once(label: str, measure: Callable[[], float]) -> Callable[[], Iterator[tuple[str, float]]]:
    def runs() -> Iterator[tuple[str, float]]:
        yield label, measure()

    return runs


def _run_part(bench: Bench, part: _Part, done: int, total: int) -> bool:
    """Run one part and report it; False when it was cancelled."""
    number = bench.request.request
    bench.status.tick(f"testing {part.name}")
    bench.send(p.Testing(request=number, part=part.kind, name=part.name, done=done, total=total))
    start, cases, worst, label, why = time.perf_counter(), 0, 0.0, "", ""
    try:
        for name, error in part.runs():
            bench.status.tick(f"testing {part.name}")
            cases += 1
            if not label or not error <= worst:
                worst, label = error, name
            if bench.control.is_cancelled:
                return False
    except LocalGlmError as error:
        worst, why = math.inf, f"{error.lines()[0]}" + (f": {error.why}" if error.why else "")
    except Exception as error:  # noqa: BLE001 - whatever a broken device makes an op raise is a result
        worst, why = math.inf, f"{type(error).__name__}: {error}"
    bench.send(
        p.Tested(
            request=number,
            part=part.kind,
            name=part.name,
            cases=cases,
            worst=worst if math.isfinite(worst) else None,
            worst_case=label,
            seconds=time.perf_counter() - start,
            passed=worst <= 1.0,
            why=why,
        )
    )
    return True


def _ended(request: p.SelfTest, device: Device, *, is_complete: bool) -> p.SelfTested:
    return p.SelfTested(request=request.request, device=device.name, is_complete=is_complete)
