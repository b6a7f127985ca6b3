"""A user writes: several lines, long pastes, files, history, an editor, commands."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from at_screen import User, at_screen
from fake_engine import FakeEngine, say
from textual import events

if TYPE_CHECKING:
    import pytest


def sent(user: User, number: int = -1) -> str:
    return user.engine.requests[number].prompt.messages[-1].content


@at_screen(FakeEngine)
async def test_three_ways_make_a_line_and_enter_sends(user: User) -> None:
    await user.presses("a", "shift+enter", "b", "ctrl+j", "c", "backslash", "enter", "d")
    assert user.engine.requests == []
    await user.asks("")
    assert sent(user) == "a\nb\nc\nd"


@at_screen(FakeEngine)
async def test_an_empty_prompt_sends_nothing(user: User) -> None:
    await user.presses("enter")
    await user.writes("  \n ")
    await user.presses("enter")
    assert user.engine.requests == []


@at_screen(FakeEngine)
async def test_a_paste_of_200_kb_is_taken_whole_and_at_once(user: User) -> None:
    text = "line of pasted text\n" * 10_000
    begun = time.process_time()
    user.chat.prompt.post_message(events.Paste(text))
    await user.sees("[pasted text 1: 200,000 characters, 10,001 lines]")
    assert time.process_time() - begun < 60  # a hang, not a figure: benchmarks/tui.py has those
    await user.asks(" what is it?")
    assert sent(user) == text + " what is it?"


@at_screen(FakeEngine)
async def test_a_paste_cannot_bring_control_characters(user: User) -> None:
    user.chat.prompt.post_message(events.Paste("a\x1b[31mb\x07\r\nc\u202e"))
    await user.until(lambda: user.chat.prompt.text)
    assert user.chat.prompt.text == "a[31mb\nc"


@at_screen(FakeEngine)
async def test_up_brings_earlier_prompts_back(user: User) -> None:
    for text in ("first", "second"):
        await user.asks(text)
    await user.presses("up")
    assert user.chat.prompt.text == "second"
    await user.presses("up")
    assert user.chat.prompt.text == "first"
    await user.presses("down", "down")
    assert user.chat.prompt.text == ""


@at_screen(FakeEngine)
async def test_a_file_is_sent_with_the_prompt(user: User, tmp_path: Path) -> None:
    (tmp_path / "a note.txt").write_text("the content")
    await user.sends(f"/file {tmp_path}/a note.txt")
    await user.sees("[file a note.txt 1:")
    await user.asks(" sum it up")
    assert "a note.txt:\n```\nthe content\n```\n sum it up" in sent(user)


@at_screen(FakeEngine)
async def test_a_file_that_is_missing_or_no_text_is_explained(user: User, tmp_path: Path) -> None:
    await user.sends("/file nowhere.txt")
    await user.sees("cannot read nowhere.txt")
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff\xfe")
    await user.sends(f"/file {tmp_path}/picture")
    await user.sees("it is not UTF-8")


@at_screen(FakeEngine)
async def test_the_editor_of_the_user_changes_the_prompt(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.py"
    script.write_text(
        "import sys, pathlib\nf = pathlib.Path(sys.argv[1])\n"
        "f.write_text(f.read_text().upper() + '\\nmore\\n')"
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    from localglm.tui.editor import edited

    assert edited("abc") == "ABC\nmore"
    monkeypatch.setenv("VISUAL", "no-such-editor")
    await user.writes("kept")
    await user.presses("ctrl+g")
    await user.until(lambda: user.chat.prompt.text == "kept")


@at_screen(FakeEngine)
async def test_a_wrong_command_is_a_panel_and_stays_in_the_prompt(user: User) -> None:
    await user.sends("/thinc off")
    await user.sees("there is no command /thinc")
    assert user.chat.prompt.text == "/thinc off"
    assert user.engine.requests == []


@at_screen(FakeEngine)
async def test_two_slashes_send_a_text_that_begins_with_one(user: User) -> None:
    await user.asks("//etc is a folder")
    assert sent(user) == "/etc is a folder"


@at_screen(FakeEngine)
async def test_tab_completes_a_command(user: User) -> None:
    await user.writes("/mem")
    await user.presses("tab")
    assert user.chat.prompt.text == "/memory"


@at_screen(lambda: FakeEngine([say("```py\nx = 1\n```\nthat was it")]))
async def test_the_answer_or_its_code_is_copied(user: User) -> None:
    await user.asks("hi")
    await user.sends("/copy code")
    await user.until(lambda: user.app.clipboard == "x = 1\n")
    await user.presses("tab", "y")
    await user.until(lambda: user.app.clipboard.endswith("that was it"))


@at_screen(FakeEngine)
async def test_ctrl_d_leaves_only_an_empty_prompt(user: User) -> None:
    await user.writes("a")
    await user.presses("home", "ctrl+d")
    assert user.app.is_running
    assert user.chat.prompt.text == ""
    await user.presses("ctrl+d")
    await user.until(lambda: user.app._exit)


@at_screen(FakeEngine)
async def test_a_slash_shows_the_commands_that_can_follow(user: User) -> None:
    await user.presses("slash", "e")
    await user.sees("/edit")
    assert "/export" in user.screen
    assert "/memory" not in user.screen
    await user.presses("backspace", "backspace")
    await user.sees("Enter sends")
