"""A rendered prompt that remembers which markers the template wrote itself.

Text of users, tools and past answers may spell markers. Before rendering, a wedge (a character that
occurs nowhere else) is put into each such copy; after rendering, whatever still reads as a marker
was written by the template, and the wedges are taken out again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from localglm.errors import RequestError
from localglm.text.markers import ASSISTANT, THINK_CLOSE, THINK_OPEN, MarkerSet, Piece


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt in pieces: template markers, and runs of ordinary text between them."""

    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The prompt as one text, exactly as the template writes it."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_thinking(self) -> bool:
        """Whether the last turn stands inside an open thinking block."""
        return thinking_at_end(self.pieces)

    @property
    def ends_in_open_block(self) -> bool:
        """Whether nothing but white space follows an opened thinking block."""
        rest = list(self.pieces)
        while rest and not rest[-1].is_marker and not rest[-1].text.strip():
            rest.pop()
        return bool(rest) and rest[-1] == Piece(THINK_OPEN, is_marker=True)

    def closed(self) -> Prompt:
        """Return the prompt with the thinking block closed."""
        return Prompt((*self.pieces, Piece(THINK_CLOSE, is_marker=True)))


def thinking_at_end(pieces: Sequence[Piece]) -> bool:
    """Tell whether the markers leave a thinking block open in the last assistant turn."""
    for piece in reversed(pieces):
        if piece.is_marker and piece.text in {THINK_OPEN, THINK_CLOSE, ASSISTANT}:
            return piece.text == THINK_OPEN
    return False


@dataclass(frozen=True, slots=True)
class Wedge:
    """A character that neither the conversation nor the template contains."""

    mark: str

    @property
    def escaped(self) -> str:
        """The mark as JSON escapes it."""
        return json.dumps(self.mark)[1:-1]

    def break_all(self, value: object, markers: MarkerSet) -> object:
        """Return ``value`` with every copied marker broken, in texts, lists and mappings."""
        if isinstance(value, str):
            return markers.break_copies(value, self.mark)
        if isinstance(value, Mapping):
            return {
                self.break_all(key, markers): self.break_all(item, markers)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.break_all(item, markers) for item in value]
        return value

    def pieces(self, rendered: str, markers: MarkerSet) -> tuple[Piece, ...]:
        """Cut a rendered text at the template's markers and take the wedges out of the rest."""
        merged: list[Piece] = []
        for piece in markers.split(rendered):
            if piece.is_marker:
                merged.append(piece)
            elif text := piece.text.replace(self.mark, "").replace(self.escaped, ""):
                merged.append(Piece(text, is_marker=False))
        return tuple(merged)


def choose_wedge(*texts: str) -> Wedge:
    """Return a wedge that occurs in none of ``texts``, neither plain nor escaped."""
    for code in _candidates():
        wedge = Wedge(chr(code))
        if not any(wedge.mark in text or wedge.escaped in text for text in texts):
            return wedge
    raise RequestError(
        "the conversation cannot be rendered safely",
        why="it uses every character that Unicode reserves for internal use",
        try_="remove such characters from the text",
    )


def _candidates() -> Iterator[int]:
    planes = range(0, 0x110000, 0x10000)
    return chain(
        range(0xFDD0, 0xFDF0), (plane + end for plane in planes for end in (0xFFFE, 0xFFFF))
    )
