"""Every op planted wrong is caught and named; nothing planted, nothing found."""

from __future__ import annotations

import pytest
from faulty import faults, opener

from localglm.backends.cpu.device import CpuDevice
from localglm.engine import protocol as p
from localglm.engine import selftest
from localglm.engine.control import Control, Status
from localglm.engine.devices import DeviceChoice, open_device
from localglm.errors import UsageError
from localglm.ops.registry import OPS, op
from localglm.ops.spec import StoredExperts, StoredMatrix
from localglm.quant.types import StorageType


def run_on(
    devices: selftest.DeviceOpener, level: p.TestLevel = "quick", backend: str = "cpu"
) -> list[p.Event]:
    events: list[p.Event] = []
    request = p.SelfTest(request=1, level=level, backend=backend)
    selftest.run(selftest.Bench(request, events.append, Status(), Control()), devices)
    return events


def parts(events: list[p.Event]) -> list[p.Tested]:
    return [e for e in events if isinstance(e, p.Tested)]


@pytest.mark.parametrize("level", ["quick", "full"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_right_device_passes_every_part(level: p.TestLevel, backend: str) -> None:
    found = parts(run_on(open_device, level, backend))
    assert [t.name for t in found if not t.passed] == []
    assert [t.name for t in found if t.part == "op"] == [s.name for s in OPS]
    assert all(t.cases for t in found)
    assert len([t for t in found if t.part == "arithmetic"]) == (7 if backend == "cpu" else 0)


@pytest.mark.parametrize(("name", "fault"), faults())
def test_a_planted_fault_is_caught_in_its_op(
    name: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "OPS", (op(name),))
    monkeypatch.setattr(selftest, "PROBES", ())
    monkeypatch.setattr(selftest, "block_products", lambda _device: iter([("none", 0.0)]))
    monkeypatch.setattr(selftest, "logits_over", lambda _device, _precision: 0.0)
    assert [t.name for t in parts(run_on(opener(name, fault))) if not t.passed] == [name]


def test_no_op_is_without_planted_faults() -> None:
    assert {name for name, _ in faults()} == {s.name for s in OPS}


def test_only_the_op_that_is_wrong_is_named() -> None:
    failed = [t for t in parts(run_on(opener("sigmoid", "sign"))) if not t.passed]
    assert [t.name for t in failed if t.part == "op"] == ["sigmoid"]
    assert "known logits" in [t.name for t in failed]


def test_an_op_that_raises_is_a_result_with_its_message() -> None:
    failed = [t for t in parts(run_on(opener("spread", "raises"))) if t.part == "op" and t.why]
    assert [(t.name, t.worst, t.why) for t in failed] == [
        ("spread", None, "RuntimeError: the kernel was refused")
    ]


@pytest.mark.parametrize("spec", OPS, ids=lambda s: s.name)
def test_quick_keeps_every_storage_type_of_an_op(spec) -> None:  # type: ignore[no-untyped-def]
    def types(cases) -> set[StorageType]:  # type: ignore[no-untyped-def]
        held = [a for c in cases for a in c.arguments.values()]
        one = {a.type for a in held if isinstance(a, StoredMatrix)}
        three = [a for a in held if isinstance(a, StoredExperts)]
        return one | {m.type for a in three for m in (a.gate, a.up, a.down)}

    every = spec.cases()
    some = selftest.chosen(every, "quick")
    assert types(some) == types(every)
    assert 0 < len(some) <= len(every)
    assert selftest.chosen(every, "full") == every


def test_a_cancelled_test_stops_and_says_so() -> None:
    control, events = Control(), list[p.Event]()

    def send(event: p.Event) -> None:
        events.append(event)
        control.is_cancelled = len(parts(events)) == 3

    bench = selftest.Bench(p.SelfTest(request=1), send, Status(), control)
    end = selftest.run(bench, open_device)
    assert not end.is_complete
    assert len(parts(events)) == 3


def test_a_device_the_back_end_does_not_have_is_refused() -> None:
    request = p.SelfTest(request=1, device="0000:01:00.0")
    with pytest.raises(UsageError, match="no device"):
        selftest.run(
            selftest.Bench(request, list[p.Event]().append, Status(), Control()), open_device
        )


def test_the_device_is_closed_after_a_failure() -> None:
    closed: list[str] = []

    class Noted(CpuDevice):
        def close(self) -> None:
            closed.append(self.name)
            super().close()

    def devices(_choice: DeviceChoice) -> CpuDevice:
        return Noted(threads=1)

    run_on(devices)
    assert closed == ["cpu"]
