"""Keeps chats on a thread of its own, in order, so that the screen never waits for a disk."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from localglm.errors import LocalGlmError
from localglm.tui.safe_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.tui.shelf import Kept, Shelf
    from localglm.tui.turns import Tree, Turn

_T = TypeVar("_T")


class Keeper:
    """The chats of a shelf. ``on_error`` is called from the keeper's thread."""

    def __init__(
        self, make_shelf: Callable[[], Shelf], on_error: Callable[[LocalGlmError], None]
    ) -> None:
        self._make_shelf = make_shelf
        self._on_error = on_error
        self._shelf: Shelf | None = None
        self._pool = ThreadPoolExecutor(1, "tui-chats")

    # -- without waiting -----------------------------------------------------------------------
    def save(self, tree: Tree, turn: Turn) -> None:
        """Keep a turn as it is; the first one makes the chat."""
        self._later(lambda: self._save(tree, turn))

    def rename(self, tree: Tree, title: str) -> None:
        """Give a chat another title."""

        def work() -> None:
            if tree.key is not None:
                self._open().rename(tree.key, title)

        self._later(work)

    def delete(self, tree: Tree) -> None:
        """Forget a chat."""

        def work() -> None:
            if tree.key is not None:
                self._open().delete(tree.key)

        tree.is_forgotten = True
        self._later(work)

    def rename_key(self, key: int, title: str) -> None:
        """Give a chat of the list another title."""
        self._later(lambda: self._open().rename(key, title))

    def delete_key(self, key: int) -> None:
        """Forget a chat of the list."""
        self._later(lambda: self._open().delete(key))

    def close(self) -> None:
        """Finish what was begun."""
        self._later(lambda: None if self._shelf is None else self._shelf.close())
        self._pool.shutdown(wait=True)

    # -- with an answer ------------------------------------------------------------------------
    async def chats(self, words: str = "") -> list[Kept]:
        """Return the chats that hold the words."""
        return await self._ask(lambda: self._open().chats(words))

    async def load(self, key: int) -> Tree:
        """Return a chat."""
        return await self._ask(lambda: self._load(key))

    async def export(self, key: int, form: str) -> str:
        """Return a chat as text."""
        return await self._ask(lambda: self._open().export(key, form))

    async def key_of(self, tree: Tree) -> int | None:
        """Return the key of a chat, once everything before was kept."""
        return await self._ask(lambda: tree.key)

    # -- on the thread -------------------------------------------------------------------------
    def _open(self) -> Shelf:
        if self._shelf is None:
            self._shelf = self._make_shelf()
        return self._shelf

    def _save(self, tree: Tree, turn: Turn) -> None:
        if tree.is_forgotten:
            return
        if tree.key is None:
            first = tree.path()[0].text if tree.path() else turn.text
            tree.key = self._open().begin(one_line(first, 60), tree)
        self._open().save(tree.key, turn)

    def _load(self, key: int) -> Tree:
        tree = self._open().load(key)
        tree.key = key
        return tree

    async def _ask(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.wrap_future(self._pool.submit(work))
        except (OSError, sqlite3.Error) as error:
            raise LocalGlmError(
                "the chats could not be read", why=str(error), try_="localglm chat MODEL --plain"
            ) from error

    def _later(self, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except LocalGlmError as error:
                self._on_error(error)
            except (OSError, sqlite3.Error) as error:
                self._on_error(
                    LocalGlmError(
                        "this chat could not be kept",
                        why=str(error),
                        try_="/export md saves a copy",
                    )
                )

        self._pool.submit(run)
