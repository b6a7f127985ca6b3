"""Runs inside the Windows Python: processes that are ended there, and files that are held open.

Named by check_suite.py; pytest collects it nowhere else.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from localglm.engine import protocol as p
from localglm.engine.client import Engine, EngineOptions
from localglm.engine.process import WorkerCommand
from localglm.errors import LocalGlmError, WorkerError

HERE = Path(__file__).parent
MODEL = HERE.parent / "oracle" / "tiny-q8_0.gguf"
ENDLESS = p.Generate(request=0, prompt=p.RandomPrompt(12, 1), ignore_end=True)
SHORT = p.Generate(request=0, prompt=p.RandomPrompt(12, 1), ignore_end=True, max_tokens=4)
NAMED_WITHIN_S = 3.0


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(EngineOptions(hang_seconds=60.0)) as started:
        started.open_model(p.OpenModel(request=0, path=str(MODEL)))
        yield started


def generated(engine: Engine) -> int:
    generation = engine.generate(SHORT)
    for _ in generation:
        pass
    assert generation.done is not None
    return generation.done.usage.generated


def end_process(process: psutil.Process) -> None:
    process.kill()


def end_task(process: psutil.Process) -> None:
    command = ["taskkill", "/F", "/PID", str(process.pid)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)


@pytest.mark.parametrize("end", [end_process, end_task])
def test_an_ended_engine_is_named_and_the_next_request_works(
    engine: Engine, end: Callable[[psutil.Process], None]
) -> None:
    assert generated(engine) == 4
    worker = psutil.Process(engine.pid)
    family = [worker, *worker.children(recursive=True)]
    begun: list[float] = []

    def run() -> None:
        for event in engine.generate(ENDLESS):
            if isinstance(event, p.Delta) and not begun:
                end(worker)
                begun.append(time.monotonic())

    with pytest.raises(WorkerError) as caught:
        run()
    assert time.monotonic() - begun[0] < NAMED_WITHIN_S
    assert "the engine process ended with exit code" in caught.value.what
    assert caught.value.why.startswith("it was not asked to end")
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert generated(engine) == 4
    assert engine.restarts == 1


def test_a_cancelled_answer_ends_and_the_next_request_works(engine: Engine) -> None:
    generation = engine.generate(ENDLESS)
    for event in generation:
        if isinstance(event, p.Delta):
            generation.cancel()
    assert generation.done is not None
    assert generation.done.reason == "cancelled"
    assert generated(engine) == 4
    assert engine.restarts == 0


@pytest.mark.parametrize(
    ("opener", "what", "why"),
    [
        ("open_foreign", "the engine process died", "0xC0000005"),
        ("open_broken", "the engine process died", "0xC0000005"),
        ("open_unreadable", "a page of the model file", "EXCEPTION_IN_PAGE_ERROR"),
    ],
)
def test_a_fault_of_the_processor_is_named(opener: str, what: str, why: str) -> None:
    command = WorkerCommand(f"inside_fault:{opener}", (str(HERE),))
    with Engine(EngineOptions(command=command)) as faulty, pytest.raises(WorkerError) as caught:
        faulty.open_model(p.OpenModel(request=0, path=str(MODEL)))
    assert what in caught.value.what
    assert why in caught.value.why


def test_no_process_outlives_a_front_end_that_was_ended() -> None:
    with subprocess.Popen(
        [sys.executable, str(HERE / "inside_front.py"), str(MODEL)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as front:
        assert front.stdout is not None
        assert front.stdout.read(1)
        family = psutil.Process(front.pid).children(recursive=True)
        front.kill()
        front.wait(20)
    assert len(family) >= 2  # the engine, and the process for its template
    assert psutil.wait_procs(family, timeout=10)[1] == []


def test_a_model_in_use_cannot_be_removed_and_can_be_afterwards(tmp_path: Path) -> None:
    model = Path(shutil.copy(MODEL, tmp_path / "in use.gguf"))
    with Engine() as engine:
        engine.open_model(p.OpenModel(request=0, path=str(model)))
        with pytest.raises(PermissionError):
            model.unlink()
        assert generated(engine) == 4
    model.unlink()


def test_a_directory_or_a_device_is_no_model(tmp_path: Path) -> None:
    with Engine() as engine:
        for path in (str(tmp_path), "NUL", "C:\\", str(tmp_path / "a:b.gguf"), "\\\\.\\pipe\\no"):
            with pytest.raises(LocalGlmError):
                engine.open_model(p.OpenModel(request=0, path=path))
        engine.open_model(p.OpenModel(request=0, path=str(MODEL)))
        assert generated(engine) == 4
        assert engine.restarts == 0
