"""Real child processes that answer, fail, crash, hang, flood or print garbage."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from localglm.devices.record import Platform, ProbeResult
from localglm.devices.runner import Probe, run
from localglm.devices.survey import probe_named, survey
from localglm.settings.load import environment

HERE = str(Path(__file__).parent)
POSIX = os.name == "posix"


def ask(function: str, *arguments: str, seconds: float = 20.0, **variables: str) -> ProbeResult:
    probe = Probe("fake", f"fake_probes:{function}", arguments, seconds, variables)
    return run([probe], [HERE])["fake"]


def is_gone(pid_file: Path) -> bool:
    """Whether a process ends; the system takes a moment to carry out a kill."""
    end = time.monotonic() + 10
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(pid_file.read_text()))
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > end:
                return False
            threading.Event().wait(0.01)
    return True


def test_an_answer_comes_back_whatever_the_driver_prints() -> None:
    result = ask("answers", FAKE_VARIABLE="set for the child")
    assert (result.status, result.said) == ("ok", "")
    assert result.data == {"greeting": "hello", "variable": "set for the child"}
    assert "FAKE_VARIABLE" not in environment()


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("is_absent", "absent", "no such driver"),
        ("fails", "failed", "RuntimeError: the driver said no"),
        ("leaves", "failed", "SystemExit: a library ended the program"),
        ("prints_garbage", "garbled", "its answer is no record"),
        ("prints_a_list", "garbled", "its answer is no record"),
        ("prints_an_odd_status", "garbled", "the status 'fine'"),
        ("floods", "garbled", "more than 4 MiB"),
        ("ends_without_a_word", "garbled", "its answer is no record: ''"),
        ("ends_with_a_code", "crashed", "it ended with code 3"),
        ("no_such_function", "failed", "AttributeError"),
    ],
)
def test_whatever_goes_wrong_is_a_result(function: str, status: str, said: str) -> None:
    result = ask(function)
    assert result.status == status
    assert said in result.said
    assert result.data == {}


@pytest.mark.parametrize(
    ("function", "signal", "place"),
    [("crashes", "SIGSEGV", "crashes"), ("aborts", "SIGABRT", "aborts")],
)
def test_a_crash_names_the_signal_and_the_place(function: str, signal: str, place: str) -> None:
    result = ask(function)
    assert result.status == "crashed"
    assert place in result.said
    if POSIX:
        assert signal in result.said


def test_a_hang_ends_in_time_and_names_where_it_waited() -> None:
    result = ask("hangs", seconds=4.0)
    assert result.status == "hung"
    assert result.said.startswith("no answer within 4 s, waiting in threading.py:")


def test_a_hang_is_killed_with_the_processes_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    assert ask("hangs_with_a_child", str(file), seconds=5.0).status == "hung"
    assert is_gone(file)


def test_a_process_left_behind_takes_nothing_from_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    result = ask("answers_and_leaves_a_child", str(file), seconds=20.0)
    assert (result.status, result.data) == ("ok", {"greeting": "hello"})
    assert is_gone(file)


def test_probes_run_side_by_side_and_a_hang_keeps_nobody_waiting() -> None:
    names = ["hangs", "hangs", "hangs", "answers", "crashes"]
    probes = [Probe(f"{name}{i}", f"fake_probes:{name}", (), 2.0) for i, name in enumerate(names)]
    results = run(probes, [HERE])
    assert [r.status for r in results.values()] == ["hung", "hung", "hung", "ok", "crashed"]
    # One after the other the three would take six seconds and more.
    assert sum(r.seconds for r in results.values() if r.status == "hung") > 5.5
    assert results["answers3"].seconds < results["hangs0"].seconds


def test_a_program_that_cannot_start_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    result = ask("answers")
    assert result.status == "failed"
    assert "could not start" in result.said


def test_a_child_ends_by_itself_when_nobody_is_there_to_kill_it() -> None:
    code = (
        f"import sys; sys.path.insert(0, {HERE!r})\n"
        "from localglm.devices.child import main\n"
        "main(['fake', 'fake_probes:hangs', '0.0'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert "Timeout (" in done.stderr
    assert done.stdout == ""


def test_a_runtime_that_dies_is_asked_again_with_the_other_chips_hidden(tmp_path: Path) -> None:
    """The processor's graphics kills the runtime; with it hidden the card is found."""
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    for number, gfx, place in ((1, 100306, 0x1300), (2, 110000, 0x300)):
        folder = nodes / str(number)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(
            f"simd_count 96\ngfx_target_version {gfx}\nlocation_id {place}\nvendor_id 4098\n"
        )
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    probes = [
        Probe("linux", "localglm.devices.probes.linux_cards:probe", (str(tmp_path),), 20.0),
        Probe("hip", "fake_probes:dies_while_all_chips_are_visible", (), 20.0),
    ]
    linux = Platform("Linux", "6.8")
    hip = survey({}, probes, [HERE], linux).probes["hip"]
    assert hip.status == "ok"
    assert "crashed while every chip was visible" in hip.said
    assert "answered with the others hidden" in hip.said
    # Where the user has chosen what is visible, nothing is hidden and the crash stands.
    chosen = survey({"HIP_VISIBLE_DEVICES": "0,1"}, probes, [HERE], linux).probes["hip"]
    assert chosen.status == "crashed"


def test_the_module_answers_by_name_on_standard_output() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localglm.devices.child", "memory"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert '"total_bytes"' in done.stdout
    assert probe_named("memory").target.endswith("computer:memory")
