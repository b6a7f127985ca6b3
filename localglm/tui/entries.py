"""What stands in the transcript: turns and notes, each a list of lines for a width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from localglm.tui.flow import Flow
from localglm.tui.turns import version_of
from localglm.tui.wrapping import wrapped
from localglm.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.errors import LocalGlmError
    from localglm.tui.turns import Turn
    from localglm.tui.wrapping import Line, Span

_ENDS = {
    "writing": "",
    "complete": "",
    "stopped": "■ stopped by you · F4 continues · F5 answers again",
    "cut": "■ cut at the limit · F4 continues · F5 answers again",
    "broken": "■ the engine ended here; the text is kept · F5 answers again",
}
_INDENT = "  "


class Entry(Protocol):
    """One item of the transcript."""

    def lines(self, width: int) -> list[Line]:
        """Return its screen lines."""

    @property
    def raw(self) -> str:
        """Return what is copied."""


class TurnEntry:
    """A question or an answer; ``append`` grows it."""

    def __init__(self, turn: Turn, *, is_open: bool = False) -> None:
        self.turn = turn
        self.is_open = is_open
        self.notices: list[str] = []
        self._text = Flow(turn.text, is_markdown=turn.role == "assistant", indent=_INDENT)
        self._thinking = Flow(
            turn.thinking,
            is_markdown=False,
            style="thinking",
            indent=_INDENT + "│ ",
            indent_style="dim",
        )

    @property
    def raw(self) -> str:
        """Return the text without the thinking."""
        return self.turn.text

    def append(self, text: str, thinking: str) -> None:
        """Show more of the turn; the turn itself is the caller's to change."""
        self._text.append(text)
        self._thinking.append(thinking)

    def lines(self, width: int) -> list[Line]:
        """Return label, thinking, text, notices and end mark."""
        out: list[Line] = [self._label()]
        if not self._thinking.is_empty:
            out.append(((_INDENT, "text"), (self._thinking_line(), "dim")))
            if self.is_open:
                out += self._thinking.lines(width)
        out += self._text.lines(width)
        for notice in self.notices:
            out += wrapped([("! " + notice, "note")], width, [(_INDENT, "text")])
        if end := _ENDS[self.turn.state]:
            out += wrapped([(end, "note")], width, [(_INDENT, "text")])
        out.append(())
        return out

    def _label(self) -> Line:
        name, style = ("you", "you") if self.turn.role == "user" else ("glm", "glm")
        label: list[Span] = [(name, style)]
        number, count = version_of(self.turn)
        if count > 1:
            label.append((f"  ← version {number} of {count} →", "dim"))
        return tuple(label)

    def _thinking_line(self) -> str:
        turn = self.turn
        facts = f"{duration_text(turn.thinking_s)} · {turn.thinking_tokens} tokens"
        is_live = turn.state == "writing" and not turn.text
        verb = "thinking" if is_live else "thought for"
        hint = "Space folds" if self.is_open else "Space opens"
        more = f"{hint}, F3 answers now" if is_live else hint
        return f"{'▾' if self.is_open else '▸'} {verb} {facts} · {more}"


class NoteEntry:
    """Lines of the program: a reply to a command, or an error as a panel."""

    def __init__(self, rows: Sequence[Sequence[Span]]) -> None:
        self._rows = [list(row) for row in rows]

    @classmethod
    def text(cls, text: str, style: str = "dim") -> NoteEntry:
        """Return a note of plain lines."""
        return cls([[(line, style)] for line in text.split("\n")])

    @classmethod
    def error(cls, error: LocalGlmError, title: str = "error") -> NoteEntry:
        """Return what failed, why, and what to try."""
        from localglm.tui.safe_text import shown  # noqa: PLC0415 - only after a failure

        rows: list[list[Span]] = [[("┃ ", "error"), (f"{title}: {shown(error.what)}", "error")]]
        if error.why:
            rows.append([("┃ ", "error"), ("why: ", "strong"), (shown(error.why), "text")])
        if error.try_:
            rows.append([("┃ ", "error"), ("try: ", "strong"), (shown(error.try_), "text")])
        return cls(rows)

    @property
    def raw(self) -> str:
        """Return the text of the lines."""
        return "\n".join("".join(text for text, _ in row) for row in self._rows)

    def lines(self, width: int) -> list[Line]:
        """Return the lines, wrapped under their bar."""
        out: list[Line] = []
        for row in self._rows:
            head = row[:1] if row and row[0][0] == "┃ " else []
            for part in _at_breaks(row[len(head) :]):
                out += wrapped(part, width, head, head)
        out.append(())
        return out


def _at_breaks(row: Sequence[Span]) -> list[list[Span]]:
    """Cut a row at the line feeds in it."""
    out: list[list[Span]] = [[]]
    for text, style in row:
        first, *rest = text.split("\n")
        out[-1].append((first, style))
        out += [[(part, style)] for part in rest]
    return out
