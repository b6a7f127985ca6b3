"""Light Markdown, one source line at a time: what a line is, and its emphasis.

Text is only ever given a style, never interpreted further; raw text stays what is copied.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from localglm.tui.wrapping import wrapped

if TYPE_CHECKING:
    from localglm.tui.wrapping import Line, Span

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$")
_QUOTE = re.compile(r"^(\s{0,3}>\s?)(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:\s*\1){2,}\s*$")
_INLINE = re.compile(
    r"(`+)(?!`)(.{1,2000}?)(?<!`)\1(?!`)"
    r"|\*\*(?=\S)(.{1,2000}?)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(.{1,2000}?)(?<=[^\s*])\*(?![\w*])"
)
_LONGEST_INLINE = 20_000


class Markdown:
    """Follows the code fences of one text."""

    def __init__(self) -> None:
        self._fence: str | None = None

    def lines(self, source: str, width: int, *, is_whole: bool = True) -> list[Line]:
        """Return a source line as screen lines; only a whole one opens or closes a fence."""
        fence = _FENCE.match(source)
        if self._fence is not None:
            closes = fence is not None and fence[1].startswith(self._fence) and not fence[2].strip()
            if closes and is_whole:
                self._fence = None
            return wrapped([(source, "mark" if closes else "code")], width)
        if fence is not None and "`" not in fence[2]:
            if is_whole:
                self._fence = fence[1]
            return wrapped([(source, "mark")], width)
        return self._text(source, width)

    def _text(self, source: str, width: int) -> list[Line]:
        if match := _HEADING.match(source):
            return wrapped([(match[2], "heading")], width)
        if _RULE.match(source):
            return [(("─" * min(width, 40), "mark"),)]
        if match := _ITEM.match(source):
            indent = match[1] + ("•" if match[2] in "-*+" else match[2]) + " "
            hang = " " * min(len(indent), width // 2)
            head: list[Span] = [(indent, "bullet")]
            return wrapped(inline(match[4]), width, head, [(hang, "text")])
        if match := _QUOTE.match(source):
            bar: list[Span] = [("│ ", "mark")]
            return wrapped(inline(match[2], "quote"), width, bar, bar)
        return wrapped(inline(source), width)


def inline(text: str, style: str = "text") -> list[Span]:
    """Return a text with its emphasis; marks that are not closed stay as they are."""
    if len(text) > _LONGEST_INLINE or ("`" not in text and "*" not in text):
        return [(text, style)]
    out: list[Span] = []
    at = 0
    for match in _INLINE.finditer(text):
        if match.start() > at:
            out.append((text[at : match.start()], style))
        if match[2] is not None:
            out.append((match[2], "code"))
        elif match[3] is not None:
            out.append((match[3], "strong"))
        else:
            out.append((match[4], "emphasis"))
        at = match.end()
    if at < len(text) or not out:
        out.append((text[at:], style))
    return out
