"""Tool calls in GLM's native form, found while the answer streams.

``<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value>...</tool_call>``, with or without line
breaks between the parts. The result depends on the text alone, never on how it was cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from localglm.text.markers import (
    CALL_CLOSE,
    CALL_OPEN,
    KEY_CLOSE,
    KEY_OPEN,
    VALUE_CLOSE,
    VALUE_OPEN,
    MarkerSet,
    Piece,
)
from localglm.text.toolvalues import argument_schemas, read_value

_TAG = re.compile(r"</?[A-Za-z_|][^<>]*>")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete call: its arguments as values, and each as the model wrote it."""

    name: str
    arguments: Mapping[str, object]
    written: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BrokenCall:
    """A call that cannot be used: all of its text, the name as far as known, and the reason."""

    text: str
    name: str
    why: str


class _At(Enum):
    OUTSIDE = auto()
    NAME = auto()
    KEY = auto()
    AFTER_KEY = auto()
    VALUE = auto()
    AFTER_VALUE = auto()


@dataclass(slots=True)
class _Draft:
    """The call being read."""

    text: list[str] = field(default_factory=list)
    name: str = ""
    written: dict[str, str] = field(default_factory=dict)
    fault: str = ""

    def blame(self, why: str) -> None:
        self.fault = self.fault or why


class ToolCallParser:
    """Takes answer text; gives back text, complete calls and broken calls, in their order."""

    def __init__(self, tools: Sequence[Mapping[str, object]] = ()) -> None:
        self._schemas = argument_schemas(tools)
        self._markers = MarkerSet.of(
            (CALL_OPEN, CALL_CLOSE, KEY_OPEN, KEY_CLOSE, VALUE_OPEN, VALUE_CLOSE)
        )
        self._pending = ""
        self._at = _At.OUTSIDE
        self._draft = _Draft()
        self._text: list[str] = []
        self._key = ""
        self._events: list[str | ToolCall | BrokenCall] = []

    @property
    def is_inside(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._at is not _At.OUTSIDE

    def push(self, text: str | Piece) -> list[str | ToolCall | BrokenCall]:
        """Take the next part of the answer and return what is certain.

        A text is searched for the tags. A piece is taken at its word: text that only spells a tag
        stays text.
        """
        if isinstance(text, Piece):
            self._flush()
            self._take(text)
        else:
            self._pending += text
            ready = len(self._pending) - self._markers.held(self._pending)
            settled, self._pending = self._pending[:ready], self._pending[ready:]
            for piece in self._markers.split(settled):
                self._take(piece)
        return self._drain()

    def finish(self) -> list[str | ToolCall | BrokenCall]:
        """Return what is left; a call the output ended in is broken."""
        self._flush()
        if self._at is not _At.OUTSIDE:
            self._draft.blame("the output ended inside the call")
            self._end_call()
        return self._drain()

    def _flush(self) -> None:
        text, self._pending = self._pending, ""
        self._take(Piece(text, is_marker=False))

    def _drain(self) -> list[str | ToolCall | BrokenCall]:
        events, self._events = self._events, []
        return events

    def _take(self, piece: Piece) -> None:
        if not piece.text:
            return
        if self._at is not _At.OUTSIDE:
            self._draft.text.append(piece.text)
        if not piece.is_marker or piece.text not in self._markers.texts:
            self._take_text(piece.text)
        elif self._at is _At.OUTSIDE:
            if piece.text == CALL_OPEN:
                self._begin_call()
        elif self._at is _At.VALUE:
            self._mark_in_value(piece.text)
        elif piece.text == CALL_OPEN:
            self._open_again()
        elif piece.text == CALL_CLOSE:
            self._close_call()
        else:
            self._mark_in_arguments(piece.text)

    def _take_text(self, text: str) -> None:
        if self._at is _At.OUTSIDE:
            self._events.append(text)
        else:
            self._text.append(text)

    def _taken(self) -> str:
        text = "".join(self._text)
        self._text = []
        return text

    def _begin_call(self) -> None:
        self._draft = _Draft([CALL_OPEN])
        self._text = []
        self._at = _At.NAME

    def _open_again(self) -> None:
        if self._at is _At.NAME and not "".join(self._text).strip():
            return
        self._draft.text.pop()
        self._draft.blame("another call began before its end")
        self._end_call()
        self._begin_call()

    def _close_call(self) -> None:
        if self._at is _At.KEY or self._at is _At.AFTER_KEY:
            self._draft.blame("its last argument has no value")
        self._settle()
        self._end_call()

    def _mark_in_value(self, mark: str) -> None:
        if mark == VALUE_CLOSE:
            self._draft.written[self._key] = self._taken()
            self._at = _At.AFTER_VALUE
        else:
            self._text.append(mark)

    def _mark_in_arguments(self, mark: str) -> None:
        if mark == KEY_OPEN and self._at is not _At.KEY:
            if self._at is _At.AFTER_KEY:
                self._draft.blame(f"the argument {self._key!r} has no value")
            self._settle()
            self._at = _At.KEY
        elif mark == KEY_CLOSE and self._at is _At.KEY:
            self._end_key()
            self._at = _At.AFTER_KEY
        elif mark == VALUE_OPEN and self._at in {_At.KEY, _At.AFTER_KEY}:
            if self._at is _At.KEY:
                self._end_key()
            elif self._taken().strip():
                self._draft.blame(f"text stands between {self._key!r} and its value")
            self._at = _At.VALUE
        elif self._at is _At.AFTER_VALUE:
            self._mark_after_value(mark)

    def _mark_after_value(self, mark: str) -> None:
        if mark == VALUE_CLOSE and self._bare(self._text):
            # Only a value that itself holds the closing tag goes on after it.
            self._draft.written[self._key] += VALUE_CLOSE + self._taken()
        else:
            self._text.append(mark)

    def _bare(self, parts: Sequence[str]) -> str:
        """Return what is left of ``parts`` without tags and outer white space."""
        pieces = self._markers.split("".join(parts))
        return "".join(piece.text for piece in pieces if not piece.is_marker).strip()

    def _settle(self) -> None:
        """End the name, or what follows a value."""
        text = self._taken()
        if self._at is _At.NAME:
            self._draft.name = _TAG.sub("", text).strip()
        elif self._bare([text]):
            self._draft.blame("text stands between the arguments")

    def _end_key(self) -> None:
        self._key = _TAG.sub("", self._taken()).strip()
        if not self._key or "<" in self._key or ">" in self._key:
            self._draft.blame(f"{self._key!r} is no argument name")
        if self._key in self._draft.written:
            self._draft.blame(f"the argument {self._key!r} is given twice")

    def _end_call(self) -> None:
        draft = self._draft
        if self._at is _At.NAME and not draft.name:
            draft.name = _TAG.sub("", self._taken()).strip()
        if not draft.name or any(character in "<>\n" for character in draft.name):
            draft.blame("it names no function")
        self._at = _At.OUTSIDE
        if draft.fault:
            self._events.append(BrokenCall("".join(draft.text), draft.name, draft.fault))
            return
        schemas = self._schemas.get(draft.name, {})
        arguments = {key: read_value(text, schemas.get(key)) for key, text in draft.written.items()}
        self._events.append(ToolCall(draft.name, arguments, draft.written))


def parse_calls(
    text: str, tools: Sequence[Mapping[str, object]] = ()
) -> list[str | ToolCall | BrokenCall]:
    """Parse a whole answer; runs of text come joined."""
    parser = ToolCallParser(tools)
    return join_text([*parser.push(text), *parser.finish()])


def join_text(
    events: Sequence[str | ToolCall | BrokenCall],
) -> list[str | ToolCall | BrokenCall]:
    """Return the events with neighbouring texts joined."""
    joined: list[str | ToolCall | BrokenCall] = []
    for event in events:
        if isinstance(event, str) and joined and isinstance(joined[-1], str):
            joined[-1] += event
        else:
            joined.append(event)
    return joined
