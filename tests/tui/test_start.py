"""How the program begins: help stays light, and pipes get plain lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from localglm.tui.begin import Last
from localglm.tui.last import keep_last, read_last

ROOT = Path(__file__).parents[2]


def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        input=given, capture_output=True, text=True, check=False, timeout=100,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.cwd())},
    )  # fmt: skip


def test_without_a_terminal_the_program_chats_in_plain_lines_with_the_demo() -> None:
    done = run(given="hi\n")
    assert done.returncode == 0
    assert "demo.gguf" in done.stderr
    assert done.stdout.strip()
    assert "\x1b" not in done.stdout + done.stderr


def test_the_help_of_the_program_names_the_full_screen() -> None:
    text = " ".join(run("--help").stdout.split())
    assert "Without a command: the full-screen chat" in text
    assert "--plain" in text


def test_what_was_open_last_is_remembered(tmp_path: Path) -> None:
    model = tmp_path / "a.gguf"
    assert read_last() == Last()
    keep_last(Last(model, 7))
    assert read_last() == Last()  # the file of the model is gone
    model.touch()
    assert read_last() == Last(model, 7)


def test_a_damaged_memory_is_no_error(tmp_path: Path) -> None:
    keep_last(Last(tmp_path, 7))
    file = next(tmp_path.rglob("last.json"))
    for text in ("", "[]", "{}", json.dumps({"model": 5, "chat": 1}), "\x00"):
        file.write_text(text)
        assert read_last() == Last()
