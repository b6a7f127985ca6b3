"""The self-test as a doctor runs it: through a real engine process, planted faults included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from localglm.doctor.selftest import Card, Options, SelfTest, Step, once, remembered, run
from localglm.engine.process import WorkerCommand
from localglm.errors import UsageError
from localglm.ops.registry import OPS

CARD = Card("Example 9000", "1.2.3")
HERE = str(Path(__file__).parent)


def run_with(name: str, fault: str, hang_seconds: float = 60.0) -> SelfTest:
    command = WorkerCommand(search_paths=(HERE,), devices=f"faulty:open_{name}__{fault}")
    return run("quick", "cpu", CARD, options=Options(command, hang_seconds))


def test_a_right_device_passes_and_progress_is_told() -> None:
    steps: list[Step] = []
    test = run("quick", "cpu", CARD, steps.append)
    assert (test.verdict, test.fault, test.advice) == ("passed", "", "")
    assert [s.name for s in steps] == [r.name for r in test.results]
    assert [s.done for s in steps] == list(range(steps[0].total))
    assert {s.name for s in OPS} < {s.name for s in steps}


@pytest.mark.parametrize(("name", "fault"), [("matmul", "scale"), ("kda_scan", "state")])
def test_a_planted_fault_is_named_with_card_driver_and_advice(name: str, fault: str) -> None:
    test = run_with(name, fault)
    assert test.verdict == "failed"
    assert [r.name for r in test.failures if r.part == "op"] == [name]
    text = "\n".join(test.lines())
    assert f"cpu on {CARD.name} (driver {CARD.driver}) failed" in text
    assert f"\n{name}: " in text
    assert "tolerances off (" in text
    assert text.splitlines()[-1].startswith("try: ")


def test_a_device_that_ends_the_process_is_a_result() -> None:
    test = run_with("sigmoid", "dies")
    assert test.verdict == "failed"
    assert (test.results[-1].name, test.results[-1].status) == ("sigmoid", "crashed")
    assert {r.status for r in test.results[:-1]} == {"passed"}
    assert test.fault


def test_a_device_that_hangs_is_a_result() -> None:
    test = run_with("add", "hangs", hang_seconds=3.0)
    assert test.verdict == "failed"
    assert (test.results[-1].name, test.results[-1].status) == ("add", "hung")


def test_a_test_that_is_stopped_has_no_verdict_on_the_device() -> None:
    stop = Event()
    test = run("full", "cpu", CARD, lambda _step: stop.set(), Options(stop=stop))
    assert test.verdict == "stopped"
    assert len(test.results) < len(OPS)


def test_an_unknown_back_end_fails_with_its_reason() -> None:
    test = run("quick", "abacus", CARD)
    assert test.verdict == "failed"
    assert "abacus" in test.fault
    assert test.results == ()


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(UsageError, match="no device"):
        run("quick", "cpu", Card("x", "y", device="7"))


def test_the_doctors_process_loads_no_runtime() -> None:
    code = (
        "import sys, localglm.doctor.selftest\n"
        "print([m for m in ('numpy', 'torch', 'wgpu', 'textual') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_once_runs_once_and_again_only_after_a_failure(tmp_path: Path) -> None:
    wrong = Options(WorkerCommand(search_paths=(HERE,), devices="faulty:open_matmul__sign"))
    steps: list[Step] = []
    assert once("cpu", CARD, steps.append, wrong, tmp_path).verdict == "failed"
    kept = remembered("cpu", CARD, tmp_path)
    assert kept is not None
    assert kept.verdict == "failed"
    steps.clear()
    passed = once("cpu", CARD, steps.append, folder=tmp_path)
    assert passed.verdict == "passed"
    assert steps
    steps.clear()
    assert once("cpu", CARD, steps.append, folder=tmp_path) == passed
    assert steps == []
