"""Where chats are kept, as the screen needs it, and one that lives in memory."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from localglm.tui.turns import Tree, Turn


@dataclass(frozen=True, slots=True)
class Kept:
    """One chat of the list. ``excerpt`` is where the searched words were found."""

    key: int
    title: str
    changed: float
    excerpt: str = ""


class Shelf(Protocol):
    """Keeps chats. Methods may take a moment; they are called off the screen's thread."""

    def chats(self, words: str = "") -> list[Kept]:
        """Return the chats, newest first; with words, those that hold them."""

    def begin(self, title: str, tree: Tree) -> int:
        """Keep a new chat and return its key."""

    def save(self, key: int, turn: Turn) -> None:
        """Keep a turn as it is now; its parent is kept already."""

    def load(self, key: int) -> Tree:
        """Return a chat."""

    def rename(self, key: int, title: str) -> None:
        """Give a chat another title."""

    def delete(self, key: int) -> None:
        """Forget a chat."""

    def export(self, key: int, form: str) -> str:
        """Return a chat as md, json or jsonl."""

    def close(self) -> None:
        """Finish writing."""


@dataclass(slots=True)
class _Held:
    title: str
    tree: Tree
    changed: float = field(default_factory=time.time)


class MemoryShelf:
    """Keeps chats as long as the program runs."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._keys = itertools.count(1)

    def chats(self, words: str = "") -> list[Kept]:
        """Return the chats that hold every word."""
        out = []
        for key, held in self._held.items():
            text = "\n".join([held.title, *(turn.text for turn in held.tree.everything())])
            if all(word in text.lower() for word in words.lower().split()):
                out.append(Kept(key, held.title, held.changed))
        return sorted(out, key=lambda kept: (-kept.changed, -kept.key))

    def begin(self, title: str, tree: Tree) -> int:
        """Keep a new chat."""
        key = next(self._keys)
        self._held[key] = _Held(title, tree)
        return key

    def save(self, key: int, turn: Turn) -> None:
        """Note the time; the tree itself is held."""
        turn.key = turn.number
        if key in self._held:
            self._held[key].changed = time.time()

    def load(self, key: int) -> Tree:
        """Return a chat."""
        return self._held[key].tree

    def rename(self, key: int, title: str) -> None:
        """Give a chat another title."""
        self._held[key].title = title

    def delete(self, key: int) -> None:
        """Forget a chat."""
        self._held.pop(key, None)

    def export(self, key: int, form: str) -> str:
        """Return the shown path as Markdown; the other forms belong to a store on disk."""
        from localglm.errors import UsageError  # noqa: PLC0415 - only on a mistake

        if form != "md":
            raise UsageError(
                f"a chat that is not kept on disk cannot be written as {form}",
                why="only md is possible",
                try_="/export md",
            )
        return "".join(f"## {turn.role}\n\n{turn.text}\n\n" for turn in self.load(key).path())

    def close(self) -> None:
        """Nothing is open."""
