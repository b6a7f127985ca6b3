"""The commands of the installed wheel in a Windows Python, beside the same ones here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import oracle_archive as oracle
from tests.windows.conftest import Windows, run_here, seen_by_windows

MODEL = oracle.model_path("tiny-q8_0")
ASKED = ("--max-tokens", "8", "--seed", "1", "--think", "off")


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Path]:
    """A model in a read-only folder, below a name with a space and letters of three scripts."""
    folder = tmp_path / "My Müll 模型 ж"
    folder.mkdir()
    model = Path(shutil.copy(MODEL, folder / "tiny é.gguf"))
    model.chmod(0o444)
    folder.chmod(0o555)
    yield model
    folder.chmod(0o755)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_inspect_says_what_it_says_on_linux(windows: Windows, name: str) -> None:
    path = oracle.model_path(name)
    there, _ = windows.run("inspect", seen_by_windows(path))
    assert there == run_here("inspect", str(path))[0]


def test_ask_answers_with_the_bytes_of_linux(windows: Windows) -> None:
    arguments = ("hé 模 ж", *ASKED)
    there, err = windows.run("ask", seen_by_windows(MODEL), *arguments)
    assert there == run_here("ask", str(MODEL), *arguments)[0]
    assert "answer 8 tokens" in err
    assert "\r" not in there
    other, _ = windows.run("ask", seen_by_windows(MODEL), *arguments[:-3], "2", "--think", "off")
    assert other != there


def test_ask_thinks_and_reports_as_json_like_linux(windows: Windows) -> None:
    arguments = ("hi", "--max-tokens", "12", "--seed", "1", "--think", "high", "--json")
    there = json.loads(windows.run("ask", seen_by_windows(MODEL), *arguments)[0])
    here = json.loads(run_here("ask", str(MODEL), *arguments)[0])
    for told in (there, here):
        del told["timings"], told["model"]["path"]
    assert there == here


def test_a_piped_prompt_may_have_either_line_end(windows: Windows) -> None:
    answers = [
        windows.run("ask", seen_by_windows(MODEL), "-", *ASKED, text="hé".encode() + end)[0]
        for end in (b"", b"\n", b"\r\n")
    ]
    assert len(set(answers)) == 1


def test_chat_keeps_its_turns(windows: Windows) -> None:
    typed = b"Hello\r\nAnd then?\r\n/exit\r\n"
    flags = ("--plain", "--max-tokens", "6", "--seed", "3", "--think", "off")
    out, err = windows.run("chat", seen_by_windows(MODEL), *flags, text=typed)
    assert out.strip()
    assert "kept" in err


def test_a_read_only_folder_with_spaces_and_foreign_letters_works(
    windows: Windows, odd: Path
) -> None:
    path = seen_by_windows(odd)
    assert windows.run("inspect", path)[0] == windows.run("inspect", seen_by_windows(MODEL))[0]
    plain = windows.run("ask", seen_by_windows(MODEL), "hi", *ASKED)[0]
    assert windows.run("ask", path, "hi", *ASKED)[0] == plain


@pytest.mark.parametrize("command", [("inspect",), ("ask",)])
def test_a_missing_file_is_named_in_full(
    windows: Windows, odd: Path, command: tuple[str, ...]
) -> None:
    path = seen_by_windows(odd.with_name("nix.gguf"))
    prompt = ("hi",) if command == ("ask",) else ()
    out, err = windows.run(*command, path, *prompt, code=3)
    assert out == ""
    assert path in err
    assert "Traceback" not in err


def test_settings_are_kept_with_either_line_end(windows: Windows, tmp_path: Path) -> None:
    file = tmp_path / "Eigene Wörter 模" / "config.toml"
    file.parent.mkdir()
    variables = {"LOCALGLM_CONFIG": seen_by_windows(file)}
    file.write_bytes("\ufeff# größe 模\r\n[sampling]\r\ntop_p = 0.5 # kept\r\n".encode())
    assert _value(windows, variables, "sampling.top_p") == 0.5
    windows.run("config", "set", "sampling.seed", "7", variables=variables)
    assert _value(windows, variables, "sampling.seed") == 7
    assert _value(windows, variables, "sampling.top_p") == 0.5
    written = file.read_bytes()
    assert "# größe 模".encode() in written
    assert b"\r\r" not in written
    windows.run("config", "unset", "sampling.seed", variables=variables)
    assert _value(windows, variables, "sampling.seed") == "random"
    assert list(file.parent.iterdir()) == [file]
    assert windows.run("config", "path", variables=variables)[0] == f"{seen_by_windows(file)}\n"


def test_settings_lie_in_the_users_folder(windows: Windows) -> None:
    out, _ = windows.run("config", "path")
    assert out.endswith("\\AppData\\Local\\localglm\\config.toml\n")
    assert "temperature" in windows.run("config", "show")[0]


def test_the_version_and_help_need_nothing_else(windows: Windows) -> None:
    assert windows.run("--version")[0] == run_here("--version")[0]
    assert "trace" in windows.run("--help")[0]


def _value(windows: Windows, variables: dict[str, str], key: str) -> object:
    told = json.loads(windows.run("config", "show", "--json", variables=variables)[0])
    return told["settings"][key]["value"]
