"""``localglm chat --plain`` with its turns piped in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODEL = Path(__file__).parent.parent / "oracle" / "tiny-q8_0.gguf"


def chat(turns: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    flags = ("--max-tokens", "6", "--seed", "5", "--think", "off", *arguments)
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "chat", str(MODEL), "--plain", *flags],
        input=turns.encode(),
        capture_output=True,
        check=False,
        timeout=100,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, err
    assert "Traceback" not in err
    return out, err


def figures(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("[prompt ")]


def test_each_line_is_a_turn_and_the_second_keeps_the_first() -> None:
    out, err = chat("Hello\nAnd then?\n")
    assert out.strip()
    first, second = figures(err)
    assert "kept" not in first
    assert "kept" in second


def test_retry_reads_nothing_and_the_same_seed_gives_the_same_text() -> None:
    once, _ = chat("Hello\n")
    twice, err = chat("Hello\n/retry\n")
    assert twice == once + once
    total = figures(err)[1].split()[1]
    assert f"({total} kept)" in figures(err)[1]


def test_a_bad_command_or_level_is_named_and_the_chat_goes_on() -> None:
    out, err = chat("/bogus\n/think huge\nHello\n")
    assert "there is no command /bogus" in err
    assert "off, low, high, max" in err
    assert out == chat("Hello\n")[0]


def test_the_thinking_level_changes_the_prompt() -> None:
    out, err = chat("/THINK High\nHello\n")
    assert "thinking: high" in err
    assert "(6 thinking)" in err
    assert out.strip() == ""


def test_a_turn_that_does_not_fit_is_refused_and_the_next_works() -> None:
    out, err = chat("x" * 2000 + "\nHello\n", "--context", "128")
    assert "the context holds 128" in err
    assert out == chat("Hello\n")[0]
    assert len(figures(err)) == 1


def test_a_backslash_goes_on_and_two_slashes_are_text() -> None:
    joined, _ = chat("//one\\\ntwo\n")
    assert joined != chat("//one two\n")[0]
    assert "there is no command" not in chat("//one\n")[1]


def test_exit_leaves_at_once_and_new_forgets() -> None:
    out, err = chat("/exit\nHello\n")
    assert (out, figures(err)) == ("", [])
    again, _ = chat("Hello\n/new\nHello\n")
    assert again == chat("Hello\n")[0] * 2


def test_continue_goes_on_with_a_cut_answer() -> None:
    greedy = ("--temperature", "0")
    whole, _ = chat("What\n", *greedy, "--max-tokens", "12")
    parts, err = chat("What\n/continue\n", *greedy)
    assert len(whole.strip()) > len(parts.splitlines()[0])
    assert "".join(parts.splitlines()) == "".join(whole.splitlines())
    assert len(figures(err)) == 2


def test_continue_says_why_there_is_nothing_to_go_on_with() -> None:
    _, err = chat("/continue\nHello\n/new\n/continue\nHello\n/system be brief\n/continue\n")
    assert err.count("there is no answer to go on with") == 3
    assert err.count("why: nothing was answered in this conversation") == 3
    assert len(figures(err)) == 2
    _, err = chat("x" * 2000 + "\n/continue\n", "--context", "128")
    assert "why: the last turn has no answer" in err


def test_a_new_conversation_keeps_the_system_message_and_says_so() -> None:
    once, err = chat("/system be brief\nHello\n")
    again, told = chat("/system be brief\n/new\nHello\n")
    assert again == once
    assert "with this system message" in err
    assert "with the same system message" in told
    assert chat("/system be brief\n/system\nHello\n")[0] == chat("Hello\n")[0] != once


def test_shown_thinking_is_named_where_it_shares_the_place_of_the_answer() -> None:
    flags = ("--plain", "--max-tokens", "4", "--think", "high", "--show-thinking")
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "chat", str(MODEL), *flags],
        input=b"Hello\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, timeout=60,
    )  # fmt: skip
    lines = done.stdout.decode().splitlines()
    assert any(line.startswith("thinking: ") for line in lines)
    assert lines[-1].startswith("[prompt ")


def test_help_lists_every_command() -> None:
    _, err = chat("/help\n/stats\n")
    for name in ("/exit", "/retry", "/think", "/system", "/new"):
        assert name in err
    assert "answers 0;" in err


def test_memory_shows_the_plan_and_what_is_taken() -> None:
    _, err = chat("Hello\n/memory\n")
    assert "routed experts" in err
    assert "were planned for a full context" in err


def test_without_a_terminal_the_chat_is_plain_lines_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "chat", str(MODEL)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert "/help lists the commands" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
