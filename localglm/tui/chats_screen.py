"""The list of chats: search, open, rename, delete, export."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localglm.errors import LocalGlmError
from localglm.tui.actions import of_place
from localglm.tui.safe_text import one_line
from localglm.units import duration_text

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from localglm.tui.app import GlmApp
    from localglm.tui.shelf import Kept

_RECENT_S = 60.0
_KEYS = "Enter opens · F2 renames · Del deletes · Ctrl+E exports · Esc closes"


class ChatsScreen(ModalScreen[int | None]):
    """Lists the chats; returns the key of the one to open."""

    CSS = """
    ChatsScreen { align: center middle; }
    ChatsScreen > Vertical { width: 90%; height: 90%; border: round $primary; }
    ChatsScreen > Vertical { background: $surface; }
    ChatsScreen OptionList { height: 1fr; border: none; }
    ChatsScreen Static { height: 1; padding: 0 2; color: $text-muted; }
    """
    BINDINGS: ClassVar = [
        *(
            Binding(key, f"act('{each.id}')", each.title, show=False, priority=True)
            for each in of_place("chats")
            for key in each.keys
        ),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]

    def __init__(self, words: str = "") -> None:
        super().__init__()
        self._words = words
        self._kept: list[Kept] = []
        self._renaming: Kept | None = None
        self._deleting: Kept | None = None

    @property
    def program(self) -> GlmApp:
        """The program this screen belongs to."""
        return cast("GlmApp", self.app)

    def compose(self) -> ComposeResult:
        """Lay the list out."""
        with Vertical():
            yield Input(self._words, placeholder="search in titles and texts", id="words")
            yield OptionList(id="chats")
            yield Static(_KEYS, id="keys", markup=False)

    async def on_mount(self) -> None:
        """Fill the list."""
        self.query_one(Input).focus()
        await self._fill()

    async def on_input_changed(self, event: Input.Changed) -> None:
        """Search while the user types."""
        if self._renaming is None:
            self._words = event.value
            await self._fill()

    async def _fill(self) -> None:
        words = self._words
        try:
            kept = await self.program.keeper.chats(words)
        except LocalGlmError as error:
            self._say(one_line(f"{error.what}: {error.why}"))
            return
        if words != self._words:
            return
        self._kept = kept
        chats = self.query_one(OptionList)
        chats.clear_options()
        now = time.time()
        for each in kept:
            line = Text(one_line(each.title, 60) or "untitled")
            line.append(f"  {_age(now - each.changed)}", "dim")
            if each.excerpt:
                line.append(f"\n  {one_line(each.excerpt, 100)}", "italic dim")
            chats.add_option(Option(line))
        if kept:
            chats.highlighted = 0
        self._say(_KEYS if kept else "no chat is like that · Esc closes")

    def _say(self, text: str) -> None:
        self.query_one("#keys", Static).update(text)

    def _chosen(self) -> Kept | None:
        place = self.query_one(OptionList).highlighted
        return None if place is None or place >= len(self._kept) else self._kept[place]

    # -- actions -------------------------------------------------------------------------------
    def action_act(self, name: str) -> None:
        """Obey a key."""
        self.program.act(name, "")

    def action_move(self, step: int) -> None:
        """Choose the chat above or below."""
        chats = self.query_one(OptionList)
        self._deleting = None
        if self._kept:
            place = (chats.highlighted or 0) + step
            chats.highlighted = min(max(0, place), len(self._kept) - 1)

    def on_option_list_option_selected(self, _event: OptionList.OptionSelected) -> None:
        """Open what was clicked."""
        self.do_open("")

    def do_open(self, _argument: str) -> None:
        """Open the chosen chat, or end a rename."""
        field = self.query_one(Input)
        if self._renaming is not None:
            kept, self._renaming = self._renaming, None
            if field.value.strip():
                self.program.keeper.rename_key(kept.key, field.value.strip())
            field.value = ""
            self._words = ""
            self.run_worker(self._fill())
            return
        kept_chosen = self._chosen()
        if kept_chosen is not None:
            self.dismiss(kept_chosen.key)

    def do_rename_chosen(self, _argument: str) -> None:
        """Write another title in the field above."""
        self._renaming = self._chosen()
        if self._renaming is not None:
            field = self.query_one(Input)
            field.value = one_line(self._renaming.title, 60)
            field.focus()
            self._say("Enter keeps the title · Esc leaves it")

    def do_delete_chosen(self, _argument: str) -> None:
        """Delete at the second press."""
        chosen = self._chosen()
        if chosen is None:
            return
        if self._deleting is not chosen:
            self._deleting = chosen
            self._say(f"Del again deletes {one_line(chosen.title, 40)} for good")
            return
        self._deleting = None
        self.program.forget(chosen.key)
        self.run_worker(self._fill())

    def do_export_chosen(self, _argument: str) -> None:
        """Write the chosen chat to a Markdown file."""
        chosen = self._chosen()
        if chosen is not None:
            self.program.run_worker(self.program.export_key(chosen.key, "md", "", self._say))

    def do_close(self, _argument: str) -> None:
        """Leave the rename, or the list."""
        if self._renaming is not None:
            self._renaming = None
            self.query_one(Input).value = self._words
            self._say(_KEYS)
            return
        self.dismiss(None)


def _age(seconds: float) -> str:
    """Return how long ago something was; clocks of two computers may differ."""
    return "just now" if seconds < _RECENT_S else f"{duration_text(seconds)} ago"
