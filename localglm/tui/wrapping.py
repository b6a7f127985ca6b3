"""Cutting styled text into lines of cells. Knows no Markdown and no widgets.

A style is a word that the screen turns into colours; a line is a list of spans.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len, get_character_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Span: TypeAlias = tuple[str, str]
"""Text and the name of its style."""

Line: TypeAlias = tuple[Span, ...]

_WORD = re.compile(r"\S+\s*|\s+")


def text_of(line: Line) -> str:
    """Return the plain text of a line."""
    return "".join(text for text, _ in line)


def cuts(text: str, first: int, width: int) -> Iterator[int]:
    """Yield where each line of ``text`` ends; ``first`` cells are free on the first line."""
    begin, used, room = 0, 0, first
    for match in _WORD.finditer(text):
        word = match[0]
        needed = cell_len(word.rstrip())
        if used and used + needed > room:
            yield match.start()
            begin, used, room = match.start(), 0, width
        if needed > room:
            for end in _hard_cuts(word, room, width):
                yield match.start() + end
                begin, room = match.start() + end, width
            used = cell_len(text[begin : match.end()])
        else:
            used += cell_len(word)
    yield len(text)


def _hard_cuts(word: str, first: int, width: int) -> Iterator[int]:
    """Yield cuts inside a word that is longer than a line."""
    if word.isascii():
        yield from range(first, len(word.rstrip()), width)
        return
    used, room = 0, first
    for at, char in enumerate(word):
        size = get_character_cell_size(char)
        if used + size > room and used:
            yield at
            used, room = 0, width
        used += size


def wrapped(
    spans: Sequence[Span], width: int, head: Sequence[Span] = (), hang: Sequence[Span] = ()
) -> list[Line]:
    """Return lines of at most ``width`` cells.

    ``head`` stands before the first line and ``hang`` before the others.
    """
    text = "".join(part for part, _ in spans)
    first = max(1, width - sum(cell_len(part) for part, _ in head))
    rest = max(1, width - sum(cell_len(part) for part, _ in hang))
    ends = list(cuts(text, first, rest))
    out: list[Line] = []
    place, begin, offset = 0, 0, 0
    for number, end in enumerate(ends):
        line: list[Span] = list(hang if number else head)
        while place < len(spans):
            part, style = spans[place]
            taken = part[begin - offset : end - offset]
            if taken:
                line.append((taken, style))
            if offset + len(part) > end:
                break
            offset += len(part)
            place += 1
            begin = max(begin, offset)
        begin = end
        out.append(tuple(line))
    return out
