"""Growing text as screen lines: what is finished is laid out once, only the tail again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.tui.markdown import Markdown
from localglm.tui.safe_text import shown
from localglm.tui.wrapping import wrapped

if TYPE_CHECKING:
    from localglm.tui.wrapping import Line, Span

_LONG_TAIL = 1500
_KEPT_TAIL = 300


class Flow:
    """One text and its lines at the width they were last asked for."""

    def __init__(
        self,
        text: str = "",
        *,
        is_markdown: bool = True,
        style: str = "text",
        indent: str = "",
        indent_style: str = "text",
    ) -> None:
        self._parts: list[str] = [text] if text else []
        self._is_markdown = is_markdown
        self._style = style
        self._indent: tuple[Span, ...] = ((indent, indent_style),) if indent else ()
        self._indent_cells = len(indent)
        self._width = 0
        self._begin("")

    @property
    def text(self) -> str:
        """The raw text, as it came."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing came yet."""
        return not self._parts

    def append(self, text: str) -> None:
        """Take more text."""
        if text:
            self._parts.append(text)
            self._pending += text

    def lines(self, width: int) -> list[Line]:
        """Return every line; the list is the flow's own and only valid until the next call."""
        width = max(8, width - self._indent_cells)
        if width != self._width:
            self._width = width
            self._begin(self.text)
        if self._pending:
            self._lay_out()
        return self._lines

    def _begin(self, pending: str) -> None:
        self._markdown = Markdown()
        self._lines: list[Line] = []
        self._frozen = 0
        self._tail = ""
        self._pending = pending

    def _lay_out(self) -> None:
        *whole, self._tail = (self._tail + self._pending).split("\n")
        self._pending = ""
        del self._lines[self._frozen :]
        for source in whole:
            self._take(self._source(source, is_whole=True))
        self._frozen = len(self._lines)
        if len(self._tail) > _LONG_TAIL:
            self._freeze_most_of_tail()
        if self._tail:
            self._take(self._source(self._tail, is_whole=False))

    def _take(self, lines: list[Line]) -> None:
        self._lines += [(*self._indent, *line) for line in lines] if self._indent else lines

    def _freeze_most_of_tail(self) -> None:
        """Keep the end of a long line live; what stands before it does not move any more."""
        lines = self._source(self._tail, is_whole=False)
        kept = max(1, _KEPT_TAIL // self._width)
        head = lines[:-kept]
        end = sum(len(text) for line in head for text, _ in line)
        # Marks and indents make lines differ from their source; plain ones are cut by count.
        joined = "".join(text for line in head for text, _ in line)
        if head and self._tail.startswith(joined) and shown(self._tail) == self._tail:
            self._take(head)
            self._frozen = len(self._lines)
            self._tail = self._tail[end:]
            return
        cut = self._tail.rfind(" ", 0, len(self._tail) - _KEPT_TAIL)
        cut = len(self._tail) - _KEPT_TAIL if cut < _LONG_TAIL // 2 else cut + 1
        self._take(self._source(self._tail[:cut], is_whole=False))
        self._frozen = len(self._lines)
        self._tail = self._tail[cut:]

    def _source(self, source: str, *, is_whole: bool) -> list[Line]:
        source = shown(source).rstrip("\n")
        if self._is_markdown:
            return self._markdown.lines(source, self._width, is_whole=is_whole)
        return wrapped([(source, self._style)], self._width)
