"""Marker texts such as ``<|user|>``: finding them, holding back halves, breaking copies.

A marker counts as one only when the template or the model wrote it as such. This module knows texts
alone; which id a marker has belongs to the tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

END_OF_TEXT = "<|endoftext|>"
USER = "<|user|>"
ASSISTANT = "<|assistant|>"
OBSERVATION = "<|observation|>"
THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"
CALL_OPEN = "<tool_call>"
CALL_CLOSE = "</tool_call>"
KEY_OPEN = "<arg_key>"
KEY_CLOSE = "</arg_key>"
VALUE_OPEN = "<arg_value>"
VALUE_CLOSE = "</arg_value>"

GLM_MARKERS = (
    END_OF_TEXT,
    "[MASK]",
    "[gMASK]",
    "[sMASK]",
    "<sop>",
    "<eop>",
    "<|system|>",
    USER,
    ASSISTANT,
    OBSERVATION,
    THINK_OPEN,
    THINK_CLOSE,
    CALL_OPEN,
    CALL_CLOSE,
    "<tool_response>",
    "</tool_response>",
    KEY_OPEN,
    KEY_CLOSE,
    VALUE_OPEN,
    VALUE_CLOSE,
)
"""Markers of the family, looked up by text: a vocabulary numbers them as it likes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of ordinary text, or one marker."""

    text: str
    is_marker: bool


@dataclass(frozen=True, slots=True)
class MarkerSet:
    """The markers of one vocabulary, each at least two characters long."""

    texts: frozenset[str]
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _starts: frozenset[str] = field(init=False, repr=False, compare=False)
    _ends: frozenset[str] = field(init=False, repr=False, compare=False)
    _longest: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the pattern and the tables of proper beginnings and ends."""
        by_length = sorted(self.texts, key=lambda text: (-len(text), text))
        pattern = "|".join(map(re.escape, by_length)) if by_length else r"(?!)"
        set_ = object.__setattr__
        set_(self, "_pattern", re.compile(pattern))
        set_(self, "_starts", frozenset(t[:n] for t in by_length for n in range(1, len(t))))
        set_(self, "_ends", frozenset(t[n:] for t in by_length for n in range(1, len(t))))
        set_(self, "_longest", max(map(len, by_length), default=1))

    @classmethod
    def of(cls, texts: Iterable[str]) -> MarkerSet:
        """Collect ``texts`` into a set."""
        return cls(frozenset(texts))

    def held(self, text: str) -> int:
        """Return how many characters at the end of ``text`` may be the start of a marker."""
        for length in range(min(len(text), self._longest - 1), 0, -1):
            if text[-length:] in self._starts:
                return length
        return 0

    def split(self, text: str) -> list[Piece]:
        """Cut ``text`` into markers and what lies between; the longest marker wins."""
        pieces: list[Piece] = []
        at = 0
        for match in self._pattern.finditer(text):
            if match.start() > at:
                pieces.append(Piece(text[at : match.start()], is_marker=False))
            pieces.append(Piece(match.group(), is_marker=True))
            at = match.end()
        if at < len(text):
            pieces.append(Piece(text[at:], is_marker=False))
        return pieces

    def break_copies(self, text: str, wedge: str) -> str:
        """Put ``wedge`` into every marker in ``text``, and into every half one at its edges.

        A half marker at an edge could be completed by the text the template puts beside it. A wedge
        never stands at an end that is white space, so stripping the text gives the same as before.
        """
        places = {match.start() + 1 for match in re.finditer(f"(?={self._pattern.pattern})", text)}
        for length in range(1, min(len(text), self._longest - 1) + 1):
            if text[-length:] in self._starts:
                places.add(len(text) - length + 1)
            if text[:length] in self._ends:
                places.add(0)
        parts: list[str] = []
        at = 0
        for place in sorted(places):
            parts += (text[at:place], wedge)
            at = place
        parts.append(text[at:])
        return "".join(parts)
