"""Thinking: the levels a user can ask for, and parting thought from answer while text streams."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from localglm.errors import SettingsError
from localglm.text.markers import GLM_MARKERS, THINK_CLOSE, THINK_OPEN, MarkerSet, Piece
from localglm.text.prompt import Prompt, thinking_at_end


class Effort(StrEnum):
    """How much the model thinks before it answers."""

    OFF = "off"
    LOW = "low"
    HIGH = "high"
    MAX = "max"

    @classmethod
    def parse(cls, text: str) -> Effort:
        """Return the level named ``text``.

        Raises: SettingsError naming the four levels.
        """
        for level in cls:
            if text.strip().lower() == level.value:
                return level
        raise SettingsError(
            f"the thinking level {text!r} is not known",
            why=f"the levels are {', '.join(level.value for level in cls)}",
            try_="use one of these four",
        )


class Part(StrEnum):
    """What a piece of the model's output is."""

    THOUGHT = "thought"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of output of one kind; ``is_marker`` tells a marker the model wrote as one id."""

    part: Part
    text: str
    is_marker: bool = False

    @property
    def piece(self) -> Piece:
        """The run without its kind, as a tool-call parser takes it."""
        return Piece(self.text, self.is_marker)


class ThinkingSplitter:
    """Parts the output stream; the thinking markers themselves are in neither part.

    It starts in the block the sent prompt leaves open, follows a block that is opened again, and
    drops a marker that changes nothing.
    """

    def __init__(self, prompt: Prompt | str) -> None:
        if isinstance(prompt, str):
            is_open = thinking_at_end(MarkerSet.of(GLM_MARKERS).split(prompt))
        else:
            is_open = prompt.is_thinking
        self._part = Part.THOUGHT if is_open else Part.ANSWER
        self._markers = MarkerSet.of((THINK_OPEN, THINK_CLOSE))
        self._pending = ""
        self._reopened = 0

    @property
    def is_thinking(self) -> bool:
        """Whether the stream now stands inside a thinking block; at the end: never closed."""
        return self._part is Part.THOUGHT

    @property
    def reopened(self) -> int:
        """How often the model opened a block after the prompt."""
        return self._reopened

    def push(self, text: str | Piece) -> list[Span]:
        """Take the next output and return what is certain.

        A text is searched for the two markers. A piece is taken at its word: text that only spells
        a marker stays text.
        """
        if isinstance(text, Piece):
            return self._flush() + self._take(text)
        self._pending += text
        ready = len(self._pending) - self._markers.held(self._pending)
        settled, self._pending = self._pending[:ready], self._pending[ready:]
        return [span for piece in self._markers.split(settled) for span in self._take(piece)]

    def finish(self) -> list[Span]:
        """Return what was held back; see ``is_thinking`` for a block that was never closed."""
        return self._flush()

    def _flush(self) -> list[Span]:
        text, self._pending = self._pending, ""
        return self._take(Piece(text, is_marker=False))

    def _take(self, piece: Piece) -> list[Span]:
        if piece.is_marker and piece.text == THINK_OPEN:
            self._reopened += self._part is Part.ANSWER
            self._part = Part.THOUGHT
            return []
        if piece.is_marker and piece.text == THINK_CLOSE:
            self._part = Part.ANSWER
            return []
        return [Span(self._part, piece.text, piece.is_marker)] if piece.text else []
