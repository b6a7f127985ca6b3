"""``localglm ask`` as a user runs it, on a tiny model with random weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from localglm.engine.devices import processors

MODEL = Path(__file__).parent.parent / "oracle" / "tiny-q8_0.gguf"
SHORT = ("--max-tokens", "8", "--seed", "3", "--think", "off")


def run(*arguments: str, text: str | bytes = "", code: int = 0) -> tuple[str, str]:
    """Run the command; return standard output and standard error."""
    data = text.encode() if isinstance(text, str) else text
    done = subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        input=data,
        capture_output=True,
        check=False,
        timeout=100,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, err
    assert "Traceback" not in err
    return out, err


def without_notes(err: str) -> list[str]:
    """Return the lines that are no notes about the model file or this computer."""
    return [line for line in err.splitlines() if not line.startswith("note: ")]


def as_json(*arguments: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("ask", str(MODEL), *arguments, "--json", **more)[0])
    return found


def test_the_answer_is_on_standard_output_and_the_rest_on_standard_error() -> None:
    out, err = run("ask", str(MODEL), "Hello", *SHORT)
    told = as_json("Hello", *SHORT)
    assert told["answer"]
    assert out.rstrip("\n") == told["answer"].rstrip("\n")
    assert "tok/s" in err
    assert "tok/s" not in out


def test_a_piped_prompt_is_the_prompt() -> None:
    piped = as_json(*SHORT, text="Hello\n")
    dash = as_json("-", *SHORT, text="Hello")
    given = as_json("Hello", *SHORT)
    assert piped["answer"] == dash["answer"] == given["answer"]
    assert as_json("Hallo", *SHORT)["usage"]["prompt"] != given["usage"]["prompt"]


def test_the_json_has_everything_and_nothing_else_is_printed() -> None:
    told = as_json("Hello", "--max-tokens", "6", "--seed", "3", "--think", "low")
    assert told["finish_reason"] in {"length", "end"}
    assert told["usage"]["thinking"] > 0
    assert told["thinking"]
    assert told["seed"] == 3
    assert told["timings"]["decode_tokens_per_s"] > 0
    assert told["model"]["backend"] == "cpu"


def test_the_same_seed_repeats_the_answer_for_any_chunk() -> None:
    long = ("a long prompt, " * 6, "--max-tokens", "12", "--think", "off")
    first = as_json(*long, "--seed", "7")
    again = as_json(*long, "--seed", "7", "--chunk", "7")
    other = as_json(*long, "--seed", "8")
    assert first["answer"] == again["answer"]
    assert first["answer"] != other["answer"]


def test_a_thinking_budget_ends_the_thinking() -> None:
    free = ("Hello", "--max-tokens", "8", "--seed", "3", "--think", "high")
    assert as_json(*free)["usage"]["thinking"] == 8
    kept = as_json(*free, "--thinking-budget", "3")
    assert kept["usage"]["thinking"] == 3
    assert kept["answer"]
    assert "budget of 3" in kept["notices"][0]


def test_the_thinking_is_shown_only_on_request() -> None:
    arguments = ("ask", str(MODEL), "Hello", "--max-tokens", "6", "--seed", "3", "--think", "max")
    out, shown = run(*arguments, "--show-thinking")
    _, hidden = run(*arguments)
    assert len(shown) > len(hidden)
    assert out.strip() == ""


def test_quiet_says_nothing_besides_the_answer() -> None:
    _, err = run("ask", str(MODEL), "Hello", *SHORT, "--quiet")
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "text", "code", "named"),
    [
        (("none.gguf", "Hi"), "", 3, "none.gguf"),
        ((str(MODEL),), " \n", 2, "empty"),
        ((str(MODEL),), b"\xff\xfe\x00", 2, "not UTF-8"),
        ((str(MODEL), "Hi", "--think", "huge"), "", 2, "off, low, high"),
        ((str(MODEL), "Hi", "--temperature", "-1"), "", 2, "temperature"),
        ((str(MODEL), "Hi", "--repetition-penalty", "0"), "", 2, "0.1 to 10"),
        ((str(MODEL), "Hi", "--backend", "abacus"), "", 2, "cpu or reference"),
        ((str(MODEL), "Hi", "--context", "9999999"), "", 2, "context"),
        ((str(MODEL), "Hi", "--context", "5000"), "", 2, "4096"),
        ((str(MODEL), "x" * 900, "--context", "64"), "", 8, "the context holds 64"),
        (("none.gguf", "Hi", "--stop", ""), "", 2, "a stop string is empty"),
        (("none.gguf", "Hi", "--top-p", "0"), "", 2, "--top-p"),
        (("none.gguf", "Hi", "--frequency-penalty", "nan"), "", 2, "--frequency-penalty = nan"),
        (("none.gguf",), "x" * (64 << 20), 8, "the prompt is too large"),
        ((str(MODEL),), "a long story " * 50_000, 8, "the context holds 4096"),
    ],
)
def test_what_cannot_be_done_is_three_lines_and_an_exit_code(
    arguments: tuple[str, ...], text: Any, code: int, named: str
) -> None:
    out, err = run("ask", *arguments, text=text, code=code)
    assert out == ""
    assert named in err
    lines = without_notes(err)
    assert lines[0].startswith("error: ")
    assert 1 <= len(lines) <= 3


@pytest.mark.skipif(os.name == "nt", reason="Windows arguments are Unicode already")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((b"none.gguf", b"bad\xff"), b"the prompt"),
        ((b"none.gguf", b"Hi", b"--system", b"\xff"), b"--system"),
        ((b"none.gguf", b"Hi", b"--stop", b"\xff"), b"--stop"),
        ((b"\xff.gguf", b"Hi"), b"the path of MODEL"),
    ],
)
def test_an_argument_that_is_no_text_is_named(arguments: tuple[bytes, ...], named: bytes) -> None:
    command = [os.fsencode(sys.executable), b"-m", b"localglm", b"ask", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: " + named + b" cannot be read as text")


def test_more_threads_than_processors_are_noted() -> None:
    wanted = processors() + 1
    notes = as_json("Hello", *SHORT, "--threads", str(wanted))["model"]["notes"]
    assert [note for note in notes if note.startswith(f"{wanted} threads were asked for")]
    assert not [n for n in as_json("Hello", *SHORT)["model"]["notes"] if "threads" in n]


@pytest.mark.skipif(os.name == "nt", reason="the shell of POSIX")
def test_a_closed_standard_output_is_an_error_not_a_lost_answer() -> None:
    command = [sys.executable, "-m", "localglm", "ask", str(MODEL), "Hello", *SHORT]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *command],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == b"error: standard output could not be written"


def test_thinking_cut_by_the_limit_is_ended_before_the_figures() -> None:
    flags = ("--max-tokens", "4", "--seed", "3", "--think", "high", "--show-thinking")
    _, err = run("ask", str(MODEL), "Hello", *flags)
    assert err.splitlines()[-1].startswith("[prompt ")


@pytest.mark.skipif(os.name == "nt", reason="kills with a signal")
def test_an_error_in_the_middle_of_an_answer_begins_a_line(endless_model: Path) -> None:
    flags = ("--temperature", "0", "--think", "off", "--quiet")
    with subprocess.Popen(
        [sys.executable, "-m", "localglm", "ask", str(endless_model), "Hello", *flags],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        first = pipe(process.stdout).read(1)
        (worker,) = (c for c in psutil.Process(process.pid).children() if is_engine(c))
        worker.kill()
        seen = first + pipe(process.stdout).read()
    assert process.returncode == 7
    before, _, why = seen.partition(b"error: the engine process died\n")
    assert b"SIGKILL" in why
    assert len(before) > 1
    assert before.endswith(b"\n")


def is_engine(process: psutil.Process) -> bool:
    return any("localglm.engine.worker" in part for part in process.cmdline())


def endless(model: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start an answer that goes on until the context is full."""
    flags = ("--temperature", "0", "--think", "off", "--stop", "never in there")
    return subprocess.Popen(
        [sys.executable, "-m", "localglm", "ask", str(model), "Tell me a story", *flags],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole consoles")
def test_ctrl_c_keeps_the_partial_answer_and_exits_with_130(endless_model: Path) -> None:
    with endless(endless_model, start_new_session=True) as process:
        first = pipe(process.stdout).read(1)
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=20)
    assert process.returncode == 130, err.decode()
    assert first
    assert rest.endswith(b"\n")
    assert b"cancelled" in err
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_ends_the_answer_quietly(endless_model: Path) -> None:
    with endless(endless_model) as process:
        assert pipe(process.stdout).read(1)
        pipe(process.stdout).close()
        err = pipe(process.stderr).read()
        process.wait(20)
    assert process.returncode == 0
    assert without_notes(err.decode()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full device")
def test_a_full_disk_is_named() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "localglm", "ask", str(MODEL), "Hello", *SHORT],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert b"could not be written" in done.stderr
    assert b"Traceback" not in done.stderr
