"""Where the user writes: several lines, history, and long pastes and files kept aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.widgets import TextArea

from localglm.tui.safe_text import one_line, typed

if TYPE_CHECKING:
    from textual import events

_LONG_PASTE = 4000
_MOST_HISTORY = 500


class Prompt(TextArea):
    """The prompt. A long paste stands as a short name and is put back when it is sent."""

    DEFAULT_CSS = """
    Prompt { height: auto; min-height: 3; max-height: 10; padding: 0 1; }
    Prompt { border: round $surface-lighten-2; }
    Prompt:focus { border: round $primary; }
    """

    class Wanted(Message):
        """The user asked for an action by a key of the prompt."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, **options: Any) -> None:
        super().__init__(
            soft_wrap=True, tab_behavior="focus", show_line_numbers=False, compact=False, **options
        )
        self._history: list[str] = []
        self._place: int | None = None
        self._aside: dict[str, str] = {}

    # -- text ----------------------------------------------------------------------------------
    @property
    def whole(self) -> str:
        """The text with everything that was kept aside."""
        text = self.text
        for name, content in self._aside.items():
            text = text.replace(name, content)
        return text

    def take(self) -> str:
        """Return the whole text, note it in the history and empty the prompt."""
        text = self.whole
        if self.text.strip() and self.text not in self._history[-1:]:
            self._history = [*self._history, self.text][-_MOST_HISTORY:]
        self._place = None
        self.text = ""
        return text

    def attach(self, kind: str, content: str) -> None:
        """Keep a long text aside and write its name at the cursor."""
        number = len(self._aside) + 1
        lines = content.count("\n") + 1
        name = f"[{one_line(kind, 60)} {number}: {len(content):,} characters, {lines:,} lines]"
        self._aside[name] = typed(content)
        self.insert(name)

    def fill(self, text: str) -> None:
        """Put a text here to be changed; a long one is kept aside."""
        self.text = ""
        if len(text) > 10 * _LONG_PASTE:
            self.attach("text", text)
        else:
            self.text = typed(text)
        self.move_cursor(self.document.end)

    def remember(self, prompts: list[str]) -> None:
        """Begin the history with the questions of a chat."""
        self._history = [typed(text) for text in prompts if len(text) <= _LONG_PASTE]
        self._place = None

    # -- keys ----------------------------------------------------------------------------------
    async def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        if len(event.text) > _LONG_PASTE:
            self.attach("pasted text", event.text)
        else:
            self.insert(typed(event.text))

    async def _on_key(self, event: events.Key) -> None:
        name = self._meaning(event.key)
        if name is None:
            await super()._on_key(event)
            return
        event.prevent_default()
        event.stop()
        if name == "newline":
            self.insert("\n")
        elif name == "older":
            self._recall(-1)
        elif name == "newer":
            self._recall(1)
        else:
            self.post_message(self.Wanted(name))

    def _meaning(self, key: str) -> str | None:
        """Return what a key asks for here; None where it only edits."""
        is_empty = not self.text
        recalled = self._place is not None and self.text == self._history[self._place]
        if key == "enter":
            if self.text.endswith("\\") and self.cursor_location == self.document.end:
                self.action_delete_left()
                return "newline"
            return "send"
        meanings = {
            "shift+enter": "newline",
            "ctrl+j": "newline",
            "tab": "complete" if self.text.startswith("/") else "focus-transcript",
            "shift+tab": "focus-transcript",
        }
        if is_empty:
            meanings |= {"space": "fold", "ctrl+d": "quit", "question_mark": "help"}
        if (is_empty or recalled) and self._history:
            meanings |= {"up": "older", "down": "newer"}
        return meanings.get(key)

    def _recall(self, step: int) -> None:
        place = len(self._history) if self._place is None else self._place
        place += step
        if place >= len(self._history):
            self._place = None
            self.text = ""
            return
        self._place = max(0, place)
        self.text = self._history[self._place]
        self.move_cursor(self.document.end)
