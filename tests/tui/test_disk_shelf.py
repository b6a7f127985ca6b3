"""Chats on disk: they come back as they were, also after a kill, and for two programs at once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from at_screen import User, at_screen
from fake_engine import FakeEngine, Gate, say, think

from localglm.errors import LocalGlmError, UsageError
from localglm.tui.begin import Last
from localglm.tui.disk_shelf import DiskShelf
from localglm.tui.turns import Tree, Turn

ROOT = Path(__file__).parents[2]


def branched() -> Tree:
    tree = Tree("be brief")
    question = tree.add(Turn("user", "question about 100 % of _whales_"))
    tree.add(Turn("assistant", "first", "thought", "stopped", thinking_tokens=3), question)
    tree.add(Turn("assistant", "second"), question)
    return tree


def kept(shelf: DiskShelf, tree: Tree, title: str = "title") -> int:
    key = shelf.begin(title, tree)
    for turn in tree.everything():
        shelf.save(key, turn)
    return key


def test_a_chat_comes_back_with_every_version(tmp_path: Path) -> None:
    with closing(DiskShelf(tmp_path / "chats")) as shelf:
        key = kept(shelf, branched())
    with closing(DiskShelf(tmp_path / "chats")) as shelf:
        tree = shelf.load(key)
    assert [turn.text for turn in tree.path()] == ["question about 100 % of _whales_", "second"]
    first = tree.path()[0].children[0]
    assert (first.text, first.thinking, first.state, first.thinking_tokens) == (
        "first", "thought", "stopped", 3,
    )  # fmt: skip
    assert tree.system == "be brief"


def test_an_answer_that_was_being_written_when_killed_is_kept(tmp_path: Path) -> None:
    code = (
        "import os, pathlib\n"
        "from localglm.tui.disk_shelf import DiskShelf\n"
        "from localglm.tui.turns import Tree, Turn\n"
        "shelf = DiskShelf(pathlib.Path('chats'))\n"
        "tree = Tree()\n"
        "answer = tree.add(Turn('assistant', state='writing'), tree.add(Turn('user', 'q')))\n"
        "key = shelf.begin('t', tree)\n"
        "for count in range(50):\n"
        "    answer.text += 'word '\n"
        "    shelf.save(key, answer)\n"
        "os._exit(9)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 9
    with closing(DiskShelf(tmp_path / "chats")) as shelf:
        (only,) = shelf.chats()
        answer = shelf.load(only.key).path()[1]
    assert (answer.text, answer.state) == ("word " * 50, "stopped")


def test_two_programs_write_at_once_and_lose_nothing(tmp_path: Path) -> None:
    with closing(DiskShelf(tmp_path / "c")) as one, closing(DiskShelf(tmp_path / "c")) as other:
        keys = [kept(shelf, branched(), str(n)) for n in range(20) for shelf in (one, other)]
        assert len(set(keys)) == 40
        assert len(one.chats()) == 40
        assert all(len(list(other.load(key).everything())) == 3 for key in keys)


@pytest.mark.parametrize(("words", "count"), [("whales", 1), ("WHALES first", 1), ("100 %", 1),
                                              ("_whales_", 1), ("%%", 0), ("x_hales", 0),
                                              ("title", 1), ("whales nothing", 0)])  # fmt: skip
def test_every_word_must_be_found(tmp_path: Path, words: str, count: int) -> None:
    with closing(DiskShelf(tmp_path / "chats")) as shelf:
        kept(shelf, branched())
        assert len(shelf.chats(words)) == count


def test_a_chat_is_renamed_and_deleted(tmp_path: Path) -> None:
    with closing(DiskShelf(tmp_path / "chats")) as shelf:
        key = kept(shelf, branched())
        shelf.rename(key, "another\ud800")
        assert shelf.chats()[0].title == "another\ufffd"
        shelf.delete(key)
        assert shelf.chats() == []
        with pytest.raises(UsageError):
            shelf.load(key)
    with closing(sqlite3.connect(tmp_path / "chats")) as base:
        assert base.execute("SELECT count(*) FROM turn").fetchone() == (0,)


def test_exports_hold_the_path_or_every_turn(tmp_path: Path) -> None:
    with closing(DiskShelf(tmp_path / "chats")) as shelf:
        key = kept(shelf, branched())
        assert "first" not in shelf.export(key, "md")
        assert len(json.loads(shelf.export(key, "json"))["turns"]) == 3
        lines = [json.loads(line) for line in shelf.export(key, "jsonl").splitlines()]
    assert [line["text"] for line in lines][1:] == ["first", "second"]
    assert lines[1]["parent"] == lines[0]["id"]


def test_chats_of_a_later_version_are_refused(tmp_path: Path) -> None:
    DiskShelf(tmp_path / "chats").close()
    with closing(sqlite3.connect(tmp_path / "chats")) as base:
        base.execute("PRAGMA user_version = 99")
    with pytest.raises(LocalGlmError, match="cannot be read"):
        DiskShelf(tmp_path / "chats")


def test_the_file_of_a_later_version_is_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chats")) as base:
        base.execute("PRAGMA user_version = 99")
    before = (tmp_path / "chats").read_bytes()
    with pytest.raises(LocalGlmError):
        DiskShelf(tmp_path / "chats")
    assert (tmp_path / "chats").read_bytes() == before


def test_tables_are_made_all_or_none(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "chats")) as base:
        base.execute("CREATE TABLE turn (mine)")
    with pytest.raises(sqlite3.OperationalError):
        DiskShelf(tmp_path / "chats")
    with closing(sqlite3.connect(tmp_path / "chats")) as base:
        names = [name for (name,) in base.execute("SELECT name FROM sqlite_master")]
        base.execute("DROP TABLE turn")
        base.commit()
    assert names == ["turn"]
    DiskShelf(tmp_path / "chats").close()


FILE = Path("chats.sqlite3")


def test_a_user_comes_back_to_the_chat_of_yesterday() -> None:
    @at_screen(lambda: FakeEngine([think("hm"), say("kept answer")]), shelf=Opened())
    async def first(user: User) -> None:
        await user.asks("kept question")

    @at_screen(lambda: FakeEngine([Gate(), say("x")]), shelf=Opened(), model=None,
               last=Last(Path("demo.gguf"), 1))  # fmt: skip
    async def later(user: User) -> None:
        await user.sees("kept answer")
        await user.presses("up")
        assert user.chat.prompt.text == "kept question"
        await user.presses("backspace", *"s", "enter")
        await user.until(lambda: user.engine.requests)
        assert len(user.engine.requests[0].prompt.messages) == 3

    first()
    later()


def test_a_damaged_file_of_chats_is_a_panel_not_an_end() -> None:
    @at_screen(FakeEngine, shelf=Opened())
    async def play(user: User) -> None:
        await user.asks("question")
        await user.sees("hello")
        await user.sees("could not be kept")
        await user.presses("ctrl+r")
        await user.sees("could not be read")

    FILE.write_text("this is no database, and long enough to be looked at as one " * 50)
    play()


class Opened:
    """Opens the shelf on the thread that uses it, in the folder of the test."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if "shelf" not in self.__dict__:
            self.__dict__["shelf"] = DiskShelf(FILE)
        return getattr(self.__dict__["shelf"], name)
