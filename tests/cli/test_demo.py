"""The demonstration model, through the commands a newcomer types."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.demo_questions import questions


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        input=text, capture_output=True, text=True, encoding="utf-8", timeout=90, check=True,
    )  # fmt: skip


def ask(question: str, *flags: str) -> dict:
    return json.loads(run("ask", "demo", question, "--json", "--temperature", "0", *flags).stdout)


def test_the_demo_says_that_it_is_not_the_real_model() -> None:
    answer = ask("Who are you?", "--think", "off")["answer"]
    assert "demonstration" in answer
    assert "not GLM-5.3-Flash" in answer


def test_the_demo_adds_numbers_and_shows_its_thought_only_when_asked() -> None:
    got = ask("What is 347 + 485?", "--think", "high")
    assert "832" in got["answer"]
    assert "carry" in got["thinking"]
    off = ask("What is 47 + 38?", "--think", "off")
    assert "85" in off["answer"]
    assert off["thinking"] == ""
    assert off["usage"]["thinking"] == 0


def test_more_effort_is_a_longer_thought() -> None:
    lengths = [
        ask("What is 268 + 574?", "--think", level)["usage"]["thinking"]
        for level in ("off", "low", "high", "max")
    ]
    assert lengths == sorted(set(lengths))
    assert lengths[0] == 0


def test_values_are_found_in_texts_longer_than_the_attention_budget() -> None:
    asked = [q for q in questions(3) if q.group == "lookup 4k" and q.effort == "off"]
    assert len(asked) == 3
    for question in asked:
        got = ask(question.turns[-1].content, "--think", "off")
        assert got["usage"]["prompt"] > 3000
        assert got["answer"].strip() == question.answer


def test_the_demo_command_is_a_chat_with_it() -> None:
    done = run("demo", "--think", "off", "--temperature", "0", text="Hello!\n/exit\n")
    assert "localglm" in done.stdout


@pytest.mark.parametrize("word", ["inspect", "bench"])
def test_the_word_demo_names_it_everywhere(word: str) -> None:
    flags = ["--prompt", "16", "--generate", "4"] if word == "bench" else []
    assert json.loads(run(word, "demo", *flags, "--json").stdout)["command"] == word
