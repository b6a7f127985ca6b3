"""The real probes on this computer, whatever it has: only what is true everywhere is asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from localglm.devices.answers import DiskRate, Memory, Processor, Terminal
from localglm.devices.match import choose
from localglm.devices.merge import machine_of
from localglm.devices.record import Recording
from localglm.devices.replay import read, write
from localglm.devices.runner import run
from localglm.devices.survey import card_probes, disk_probe, survey, terminal_probe
from localglm.settings.load import environment


@pytest.fixture(scope="module")
def recording() -> Recording:
    return survey(environment(), card_probes(30.0))


def test_every_probe_ends_with_an_answer_or_says_what_is_missing(recording: Recording) -> None:
    for result in recording.probes.values():
        assert result.status in {"ok", "absent"}, result
        assert result.said or result.status == "ok"
    system = {"Linux": "linux", "Windows": "windows"}.get(recording.platform.system)
    other = {"linux", "windows"} - {system}
    assert all(recording.probes[name].status == "absent" for name in other)
    assert system is None or recording.probes[system].status == "ok"


def test_processor_and_memory_are_known(recording: Recording) -> None:
    processor = msgspec.convert(recording.probes["processor"].data, Processor)
    assert processor.logical >= 1
    assert ("portable" in processor.instruction_sets) is not bool(processor.library_problem)
    memory = msgspec.convert(recording.probes["memory"].data, Memory)
    assert 0 < memory.available_bytes <= memory.total_bytes


def test_software_on_this_computer_is_listed_as_such_and_not_chosen(recording: Recording) -> None:
    machine = machine_of(recording)
    for card in machine.cards:
        if "llvmpipe" in card.name or card.apis == ("opencl",):
            assert card.kind == "software"
    choice = choose(machine, ("cpu", "reference", "wgpu", "cuda", "hip"))
    assert choice.card is None or choice.card.kind != "software"
    assert choose(machine, ("cpu", "reference")).backend == "cpu"


def test_a_recording_chooses_the_same_again(recording: Recording, tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    file.write_bytes(write(recording))
    again = read(file)
    assert again == recording
    assert choose(machine_of(again), ("cpu",)) == choose(machine_of(recording), ("cpu",))


def test_nothing_is_imported_here_and_nothing_left_in_the_home(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from localglm.cli.app import main\n"
        "try: main(['backends', '--timeout', '30'])\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'wgpu', 'pyopencl', 'pynvml', 'textual'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    variables = {k: v for k, v in environment().items() if not k.startswith("XDG_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
        env={**variables, **home},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_home_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    home = str(file / "home")  # nobody can make a folder below a file
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "backends", "--json", "--timeout", "30"],
        capture_output=True, text=True, check=True, timeout=120,
        env={**environment(), "HOME": home, "USERPROFILE": home, "XDG_CACHE_HOME": home,
             "LOCALGLM_CONFIG": str(tmp_path / "settings.toml")},
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["choice"]["backend"] == "cpu"
    assert {probe["status"] for probe in told["probes"]} <= {"ok", "absent"}


def test_the_disk_is_read_where_a_large_file_lies_and_nothing_is_written(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 4096)
    result = run([disk_probe(str(tmp_path), 30.0)])["disk"]
    assert result.status == "absent"
    assert "no file of 64 MiB" in result.said
    large = tmp_path / "large"
    with large.open("wb") as stream:
        for _ in range(72):
            stream.write(os.urandom(1 << 20))
    result = run([disk_probe(str(tmp_path), 30.0)])["disk"]
    rate = msgspec.convert(result.data, DiskRate)
    assert rate.file == str(large)
    assert rate.one_bytes_per_s > 0
    assert rate.sixteen_bytes_per_s > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large", "small"]


def test_the_terminal_is_that_of_the_asking_process() -> None:
    terminal = msgspec.convert(run([terminal_probe(30.0)])["terminal"].data, Terminal)
    assert terminal.is_terminal is sys.stdout.isatty()
    assert terminal.columns > 0
