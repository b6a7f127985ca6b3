"""The program as a whole: light help, output that cannot be written, mistakes of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from localglm.settings.load import environment

MODEL = "tests/oracle/tiny-q8_0.gguf"
HEAVY = {"torch", "wgpu", "pyopencl", "textual", "numpy", "tokenizers", "jinja2"}


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        text=True, stderr=subprocess.PIPE, stdout=options.pop("stdout", subprocess.PIPE),
        timeout=60, check=False, **options,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "--help"], ["config", "show"]])
def test_help_and_settings_load_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from localglm.cli.app import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit as end: assert not end.code\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["config", "show"],
                                       ["inspect", MODEL]])  # fmt: skip
def test_output_that_cannot_be_written_is_three_lines(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: standard output could not be written"
    assert len(done.stderr.splitlines()) == 3


def test_the_help_tells_what_a_flag_accepts_and_its_default() -> None:
    text = " ".join(run("ask", "--help").stdout.split())
    assert "[off, low, high or max; default: high]" in text
    assert "[auto, or 16 to 1048576; default: auto]" in text
    assert "[0.1 to 10; default: 1]" in text


def test_a_reader_that_goes_away_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run("config", "show", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_of_ours_is_named_and_its_traceback_kept(tmp_path: Path) -> None:
    code = (
        "from localglm.cli import app, config\n"
        "def broken(*a, **k): raise RuntimeError('boom')\n"
        "config.command.invoke = broken\n"
        "app.main(['config', 'show'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        env={**environment(), "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "RuntimeError: boom" in done.stderr
    assert "Traceback" not in done.stderr
    assert any("boom" in log.read_text() for log in tmp_path.rglob("crash.log"))


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole consoles")
@pytest.mark.parametrize("module", ["click", "localglm.cli.screen"])
def test_ctrl_c_while_the_program_is_imported_is_quiet(tmp_path: Path, module: str) -> None:
    folder = tmp_path.joinpath(*module.split("."))
    interrupt = "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n"
    if module == "click":
        folder.mkdir()
        (folder / "__init__.py").write_text(interrupt)
        code = "from localglm.__main__ import main; main()"
    else:
        code = (
            "import sys, importlib.abc\n"
            "class Finder(importlib.abc.MetaPathFinder):\n"
            "    def find_spec(self, name, path, target=None):\n"
            f"        if name == {module!r}: {interrupt}"
            "sys.meta_path.insert(0, Finder())\n"
            "from localglm.__main__ import main; main()"
        )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        env={**environment(), "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("arguments", [["nonsense"], ["ask"], ["ask", MODEL, "x", "--top-p", "0"]])
def test_a_bad_command_line_exits_with_2(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 3
    assert "Traceback" not in done.stderr


def test_names_of_files_cannot_move_the_cursor(tmp_path: Path) -> None:
    done = run("inspect", str(tmp_path / "a\x1b[31mred\nx.gguf"))
    assert done.returncode == 3
    assert "\x1b" not in done.stderr
    assert done.stderr.splitlines()[0].startswith("error: ")
    assert 1 <= len(done.stderr.splitlines()) <= 3
