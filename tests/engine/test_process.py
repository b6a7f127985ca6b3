"""A real engine process: whatever goes wrong ends one request with a named reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import engine_toy as toy
import psutil
import pytest

from localglm.engine import protocol as p
from localglm.engine.client import Engine, EngineOptions
from localglm.engine.process import WorkerCommand, explain_exit, last_words
from localglm.errors import (
    LocalGlmError,
    MemoryShortError,
    ModelFileError,
    NumericFaultError,
    UsageError,
    WorkerError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT = p.Generate(request=0, prompt=p.TextPrompt("abcdef"), max_tokens=5)
ENDLESS = p.Generate(request=0, prompt=p.TextPrompt("abcdef"), ignore_end=True)
NAMED_WITHIN_S = 2.0
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send")


def open_file(engine: Engine, path: Path, **options: Any) -> p.Opened:
    """Open a toy file with room for an answer that outlasts any disturbance."""
    options.setdefault("context", 20_000)
    return engine.open_model(p.OpenModel(request=0, path=str(path), **options))


def finish(engine: Engine, request: p.Generate = SHORT) -> p.Done:
    generation = engine.generate(request)
    for _ in generation:
        pass
    assert generation.done is not None
    return generation.done


def fail(engine: Engine, request: p.Generate = SHORT) -> LocalGlmError:
    with pytest.raises(LocalGlmError) as caught:
        finish(engine, request)
    return caught.value


def disturb(engine: Engine, action: Callable[[], object]) -> tuple[LocalGlmError, float]:
    """Run ``action`` in the middle of an answer; return the error and the seconds it took."""
    begun: list[float] = []

    def run() -> None:
        for event in engine.generate(ENDLESS):
            if isinstance(event, p.Delta) and not begun:
                begun.append(time.monotonic())
                action()

    with pytest.raises(LocalGlmError) as caught:
        run()
    return caught.value, time.monotonic() - begun[0]


def test_an_answer_streams_from_the_other_process(toy_engine: Engine, toy_file: Any) -> None:
    opened = open_file(toy_engine, toy_file())
    assert (opened.architecture, opened.context) == ("toy", 20_000)
    assert toy_engine.pid not in {None, os.getpid()}
    kinds = {type(event).__name__ for event in toy_engine.generate(SHORT)}
    assert {"Prefill", "Delta", "Done"} <= kinds


@POSIX
def test_kill_9_in_the_middle_of_an_answer_is_named_and_the_next_request_works(
    toy_engine: Engine, toy_file: Any
) -> None:
    open_file(toy_engine, toy_file())
    assert toy_engine.pid is not None
    pid = toy_engine.pid
    error, seconds = disturb(toy_engine, lambda: os.kill(pid, signal.SIGKILL))
    assert seconds < NAMED_WITHIN_S
    assert isinstance(error, WorkerError)
    assert "SIGKILL" in error.why
    assert finish(toy_engine).reason == "length"
    assert toy_engine.restarts == 1


@pytest.mark.parametrize(
    ("behaviour", "what", "why"),
    [
        ({"exit_at": 3, "code": 7}, "ended with exit code 7", "the last words"),
        pytest.param(
            {"die_at": 3, "signal": "SIGSEGV"}, "the engine process died", "SIGSEGV", marks=POSIX
        ),
        pytest.param(
            {"die_at": 3, "signal": "SIGBUS"}, "a page of the model file", "SIGBUS", marks=POSIX
        ),
    ],
)
def test_each_way_to_die_is_told_apart(
    toy_engine: Engine, toy_file: Any, behaviour: dict[str, Any], what: str, why: str
) -> None:
    path = toy_file(**behaviour)
    open_file(toy_engine, path)
    begun = time.monotonic()
    error = fail(toy_engine)
    assert time.monotonic() - begun < NAMED_WITHIN_S
    assert isinstance(error, WorkerError)
    assert what in error.what
    assert why in error.why
    toy_file()  # the fault is gone from the file
    assert finish(toy_engine).reason == "length"


@POSIX
def test_the_crash_dump_of_the_interpreter_is_not_quoted(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file(die_at=3, signal="SIGSEGV"))
    error = fail(toy_engine)
    assert error.why == "signal 11 (SIGSEGV) ended it"
    assert any(line.startswith("Extension modules") for line in toy_engine.log()), "a dump came"


def test_the_last_words_are_those_before_a_crash_dump() -> None:
    dump = ["Fatal Python error: Aborted", "", "Extension modules: a, b (total: 2)"]
    assert last_words(["loading", "terminate called", "", *dump]) == "terminate called"
    assert last_words(dump) == ""
    assert last_words(["one", "two", ""]) == "two"


def test_windows_page_errors_are_named_like_sigbus() -> None:
    page, why = explain_exit(0xC0000006)
    assert "a page of the model file" in page
    assert "EXCEPTION_IN_PAGE_ERROR" in why
    other, _ = explain_exit(0xC0000005)
    assert "a page of the model file" not in other


def test_a_step_that_hangs_is_ended_by_the_watchdog_naming_the_stage(toy_file: Any) -> None:
    path = toy_file(hang_at=8)
    options = EngineOptions(command=toy.COMMAND, hang_seconds=2.5)
    with Engine(options) as engine:
        open_file(engine, path)
        error = fail(engine)
        assert isinstance(error, WorkerError)
        assert "no progress for 2.5 seconds" in error.what
        assert "writing token 8" in error.why
        toy_file()
        assert finish(engine).reason == "length"


def test_slow_steps_are_no_hang(toy_file: Any) -> None:
    with Engine(EngineOptions(command=toy.COMMAND, hang_seconds=2.5)) as engine:
        open_file(engine, toy_file(pause_s=0.3))
        assert finish(engine, SHORT).usage.generated == 5  # takes three seconds


def test_a_truncated_model_file_is_named_and_the_next_request_works(
    toy_engine: Engine, toy_file: Any
) -> None:
    path = toy_file()
    open_file(toy_engine, path)
    whole = path.read_text()
    error, seconds = disturb(toy_engine, lambda: path.write_text(""))
    assert isinstance(error, ModelFileError)
    assert "truncated" in error.what
    assert seconds < NAMED_WITHIN_S
    assert "truncated" in fail(toy_engine).what  # still is
    path.write_text(whole)
    assert finish(toy_engine).reason == "length"
    assert toy_engine.restarts == 0


def test_a_removed_model_file_is_named_and_the_next_request_works(
    toy_engine: Engine, toy_file: Any
) -> None:
    path = toy_file()
    open_file(toy_engine, path)
    moved = path.rename(path.with_suffix(".away"))
    error = fail(toy_engine, ENDLESS)
    assert isinstance(error, ModelFileError)
    assert "cannot be reached" in error.what
    moved.rename(path)
    assert finish(toy_engine).reason == "length"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [({"nan_at": 2}, NumericFaultError), ({"memory_at": 2}, MemoryShortError)],
)
def test_a_fault_in_a_step_leaves_the_process_alive(
    toy_engine: Engine, toy_file: Any, behaviour: dict[str, Any], kind: type[LocalGlmError]
) -> None:
    open_file(toy_engine, toy_file(**behaviour))
    assert isinstance(fail(toy_engine), kind)
    open_file(toy_engine, toy_file())
    assert finish(toy_engine).reason == "length"
    assert toy_engine.restarts == 0


def test_cancel_from_outside_keeps_the_partial_answer(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    generation, shown = toy_engine.generate(ENDLESS), ""
    for event in generation:
        if isinstance(event, p.Delta):
            shown += event.text
            generation.cancel()
    assert generation.done is not None
    assert generation.done.reason == "cancelled"
    assert 0 < len(shown) == generation.done.usage.generated


def test_leaving_the_loop_ends_the_answer(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    for event in toy_engine.generate(ENDLESS):
        if isinstance(event, p.Delta):
            break
    assert finish(toy_engine).reason == "length"


def test_end_thinking_and_budget_reach_a_running_request(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    prompt = p.ChatPrompt((p.Message(role="user", content="Hi"),), "high")
    for steer in ("end_thinking", "budget"):
        generation = toy_engine.generate(p.Generate(request=0, prompt=prompt))
        kinds = []
        for event in generation:
            if not isinstance(event, p.Delta):
                continue
            kinds.append(event.kind)
            if event.kind == "answer":
                generation.cancel()
            elif steer == "budget":
                generation.set_budget(1)
            else:
                generation.end_thinking()
        assert kinds[0] == "thinking"
        assert "answer" in kinds


def test_opening_a_missing_file_is_a_model_file_error(toy_engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no file"):
        open_file(toy_engine, tmp_path / "none.json")


def test_a_zero_chunk_is_refused(toy_engine: Engine, toy_file: Any) -> None:
    with pytest.raises(UsageError, match="chunk = 0"):
        open_file(toy_engine, toy_file(), chunk=0)


def test_a_worker_that_cannot_start_says_why_from_its_log() -> None:
    engine = Engine(EngineOptions(command=WorkerCommand("no_such_module:opener")))
    with pytest.raises(WorkerError) as caught:
        engine.start()
    engine.stop()
    assert "exit code 1" in caught.value.what
    assert "no_such_module" in caught.value.why


def test_what_a_library_prints_in_the_worker_does_not_damage_the_stream(toy_file: Any) -> None:
    command = WorkerCommand("engine_toy:open_noisy", toy.COMMAND.search_paths)
    with Engine(EngineOptions(command=command)) as engine:
        open_file(engine, toy_file())
        assert finish(engine).reason == "length"
        assert "noise on standard output" in engine.log()


def test_the_process_ends_with_its_parent() -> None:
    code = (
        "import sys, localglm.engine.client as c\n"
        "engine = c.Engine(); engine.start(); print(engine.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.is_running()
    parent.kill()
    parent.wait(10)
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    parent.stdout.close()
    parent.stdin.close()


def test_the_process_ends_with_the_engine(toy_file: Any) -> None:
    engine = Engine(EngineOptions(command=toy.COMMAND))
    engine.start()
    open_file(engine, toy_file())
    assert engine.pid is not None
    child = psutil.Process(engine.pid)
    engine.stop()
    assert not child.is_running()
    with pytest.raises(WorkerError, match="stopped"):
        engine.generate(SHORT)


def test_memory_and_statistics_are_answered(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    finish(toy_engine)
    assert toy_engine.memory().weights == 1000
    stats = toy_engine.stats()
    assert (stats.requests, stats.generated_tokens, stats.prompt_tokens) == (1, 5, 6)


def test_statistics_are_answered_while_an_answer_runs(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    generation = toy_engine.generate(ENDLESS)
    events = iter(generation)
    next(event for event in events if isinstance(event, p.Delta))
    assert toy_engine.stats().requests == 0
    assert toy_engine.memory().weights == 1000
    generation.cancel()
    assert [event.reason for event in events if isinstance(event, p.Done)] == ["cancelled"]
    assert toy_engine.stats().requests == 1


def test_a_request_that_waits_its_turn_is_no_hang(toy_file: Any) -> None:
    with Engine(EngineOptions(command=toy.COMMAND, hang_seconds=2.5)) as engine:
        open_file(engine, toy_file(pause_s=0.3))
        first, second = engine.generate(SHORT), engine.generate(SHORT)
        assert [e.reason for e in second if isinstance(e, p.Done)] == ["length"]
        assert [e.reason for e in first if isinstance(e, p.Done)] == ["length"]


def test_stopping_after_an_error_does_not_wait_for_a_running_answer(toy_file: Any) -> None:
    engine = Engine(EngineOptions(command=toy.COMMAND, stop_seconds=30.0))
    begun = 0.0

    def run() -> None:
        with engine:
            open_file(engine, toy_file())
            engine.generate(ENDLESS)
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert time.monotonic() - begun < 10.0
    assert engine.pid is None


def test_a_closed_model_answers_nothing(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    toy_engine.close_model()
    assert fail(toy_engine).what == "no model is open"
    open_file(toy_engine, toy_file())
    assert finish(toy_engine).reason == "length"


def test_kept_states_through_the_client(toy_engine: Engine, toy_file: Any) -> None:
    open_file(toy_engine, toy_file())
    finish(toy_engine)
    handle = toy_engine.snapshot()
    toy_engine.fork("main", "copy")
    toy_engine.restore(handle)
    toy_engine.drop(handle=handle, session="copy")
    with pytest.raises(LocalGlmError, match="is gone"):
        toy_engine.restore(handle)
    plan = toy_engine.plan(SHORT.prompt)
    assert (plan.total, plan.read) == (6, 0)
