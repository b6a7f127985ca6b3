"""Chats in one SQLite file: written as they grow, safe with several programs at once.

A chat is begun and its turns are saved by whoever shows it; a turn is one row that is written again
as it grows, so a program that is killed loses what came since the last write.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from localglm.errors import LocalGlmError, UsageError
from localglm.tui.shelf import Kept
from localglm.tui.turns import Tree, Turn

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = 1
_BUSY_S = 10.0
_SCHEMA = """
CREATE TABLE chat (id INTEGER PRIMARY KEY, title TEXT NOT NULL, system TEXT NOT NULL,
                   changed REAL NOT NULL);
CREATE TABLE turn (id INTEGER PRIMARY KEY, chat INTEGER NOT NULL REFERENCES chat ON DELETE CASCADE,
                   parent INTEGER REFERENCES turn ON DELETE CASCADE, role TEXT NOT NULL,
                   text TEXT NOT NULL, thinking TEXT NOT NULL, state TEXT NOT NULL,
                   thinking_tokens INTEGER NOT NULL, thinking_s REAL NOT NULL,
                   shown REAL NOT NULL);
CREATE INDEX turn_of_chat ON turn (chat);
"""
_COLUMNS = "id, parent, role, text, thinking, state, thinking_tokens, thinking_s"


class DiskShelf:
    """Keeps chats in a file; used from one thread."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(
            file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._refuse_newer(file)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA foreign_keys = ON")
            self._make()
        except BaseException:
            self._base.close()
            raise

    def _refuse_newer(self, file: Path) -> None:
        """Leave the file of a later version as it is."""
        (version,) = self._base.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise LocalGlmError(
                f"the chats in {file} cannot be read",
                why=f"they are of form {version}, this version knows {_VERSION}",
                try_="use the newer localglm",
            )

    def _make(self) -> None:
        """Make the tables unless they are there; all of them or none."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            (version,) = self._base.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.split(";")[:-1]:
                    self._base.execute(statement)
                self._base.execute(f"PRAGMA user_version = {_VERSION}")
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    # -- list ----------------------------------------------------------------------------------
    def chats(self, words: str = "") -> list[Kept]:
        """Return the chats that hold every word, newest first."""
        rows = self._rows("SELECT id, title, changed FROM chat ORDER BY changed DESC, id DESC")
        out = []
        for key, title, changed in rows:
            excerpt = self._excerpt(key, title, words.split())
            if excerpt is not None:
                out.append(Kept(key, title, changed, excerpt))
        return out

    def _excerpt(self, key: int, title: str, words: list[str]) -> str | None:
        """Return where the last word was found; None unless every word was."""
        found = ""
        for word in words:
            pattern = "%" + "".join("\\" + c if c in "\\%_" else c for c in word) + "%"
            rows = self._rows(
                "SELECT text, instr(lower(text), lower(?)) FROM turn WHERE chat = ?"
                " AND text LIKE ? ESCAPE '\\' LIMIT 1",
                word, key, pattern,
            )  # fmt: skip
            if rows:
                text, place = rows[0]
                found = text[max(0, place - 30) : place + 70]
            elif word.lower() not in title.lower():
                return None
        return found

    # -- chats ---------------------------------------------------------------------------------
    def begin(self, title: str, tree: Tree) -> int:
        """Keep a new chat."""
        made = self._base.execute(
            "INSERT INTO chat (title, system, changed) VALUES (?, ?, ?)",
            (_storable(title), _storable(tree.system), time.time()),
        )
        assert made.lastrowid is not None
        return made.lastrowid

    def save(self, key: int, turn: Turn) -> None:
        """Write a turn, with the turns before it that are not kept yet."""
        parent = turn.parent
        if parent is not None and parent.parent is not None and parent.key is None:
            self.save(key, parent)
        now = time.time()
        values = (
            parent.key if parent is not None else None, turn.role, _storable(turn.text),
            _storable(turn.thinking), turn.state, turn.thinking_tokens, turn.thinking_s, now,
        )  # fmt: skip
        if turn.key is None:
            made = self._base.execute(
                "INSERT INTO turn (chat, parent, role, text, thinking, state, thinking_tokens,"
                " thinking_s, shown) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (key, *values),
            )  # fmt: skip
            turn.key = made.lastrowid
        else:
            self._base.execute(
                "UPDATE turn SET parent = ?, role = ?, text = ?, thinking = ?, state = ?,"
                " thinking_tokens = ?, thinking_s = ?, shown = ? WHERE id = ?", (*values, turn.key),
            )  # fmt: skip
        self._base.execute("UPDATE chat SET changed = ? WHERE id = ?", (now, key))

    def load(self, key: int) -> Tree:
        """Return a chat as it was kept; an answer that was being written was stopped.

        Raises: UsageError when there is none.
        """
        found = self._rows("SELECT system FROM chat WHERE id = ?", key)
        if not found:
            raise UsageError(
                "this chat is not kept any more", why="it was deleted", try_="/chats lists them"
            )
        tree = Tree(found[0][0])
        turns: dict[int, Turn] = {}
        rows = self._rows(f"SELECT {_COLUMNS} FROM turn WHERE chat = ? ORDER BY id", key)  # noqa: S608 - our own names
        for name, parent, role, text, thinking, state, tokens, seconds in rows:
            turn = Turn(
                role, text, thinking, "stopped" if state == "writing" else state,
                thinking_tokens=tokens, thinking_s=seconds, key=name,
            )  # fmt: skip
            turns[name] = tree.add(turn, turns.get(parent, tree.root))
        for (name,) in self._rows("SELECT id FROM turn WHERE chat = ? ORDER BY shown, id", key):
            above = turns[name].parent
            if above is not None:
                above.shown_child = turns[name]
        return tree

    def rename(self, key: int, title: str) -> None:
        """Give a chat another title."""
        self._base.execute("UPDATE chat SET title = ? WHERE id = ?", (_storable(title), key))

    def delete(self, key: int) -> None:
        """Forget a chat and its turns."""
        self._base.execute("DELETE FROM chat WHERE id = ?", (key,))

    def export(self, key: int, form: str) -> str:
        """Return the shown path as Markdown, or every turn as json or as lines of json."""
        tree = self.load(key)
        if form == "md":
            return "".join(f"## {turn.role}\n\n{turn.text}\n\n" for turn in tree.path())
        turns = [_as_mapping(turn) for turn in tree.everything()]
        if form == "jsonl":
            return "".join(json.dumps(turn, ensure_ascii=False) + "\n" for turn in turns)
        whole = {"schema_version": 1, "system": tree.system, "turns": turns}
        return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with closing(self._base.execute(statement, values)) as cursor:
            return cursor.fetchall()


def _as_mapping(turn: Turn) -> dict[str, Any]:
    parent = None if turn.parent is None else turn.parent.key
    return {
        "id": turn.key, "parent": parent, "role": turn.role, "text": turn.text,
        "thinking": turn.thinking, "state": turn.state,
    }  # fmt: skip


def _storable(text: str) -> str:
    """Return a text SQLite can hold: a half of a pair is no character and becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
