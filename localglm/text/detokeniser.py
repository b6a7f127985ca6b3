"""Turning ids back into text while they arrive, never half a character and never half a marker."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from localglm.text.markers import MarkerSet, Piece


class Detokeniser:
    """One stream of ids; the emitted texts together equal ``Tokenizer.decode`` of all ids."""

    def __init__(
        self,
        bytes_of: Callable[[int], bytes],
        marker_of: Callable[[int], str | None],
        held: MarkerSet,
    ) -> None:
        self._bytes_of = bytes_of
        self._marker_of = marker_of
        self._markers = held
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def push(self, token: int) -> str:
        """Take the next id and return the text that is now certain, often one token late."""
        return "".join(piece.text for piece in self.push_pieces(token))

    def push_pieces(self, token: int) -> list[Piece]:
        """As ``push``, but a marker the model wrote as one id comes as its own piece.

        Text that merely spells a marker stays ordinary text: an answer may explain ``<think>``.
        """
        marker = self._marker_of(token)
        if marker is None:
            self._pending += self._decoder.decode(self._bytes_of(token))
            return self._take(len(self._pending) - self._markers.held(self._pending))
        return [*self.finish_pieces(), Piece(marker, is_marker=True)]

    def finish(self) -> str:
        """Return what is still held back; an unfinished character becomes U+FFFD."""
        return "".join(piece.text for piece in self.finish_pieces())

    def finish_pieces(self) -> list[Piece]:
        """As ``finish``, in pieces."""
        self._pending += self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return self._take(len(self._pending))

    def _take(self, count: int) -> list[Piece]:
        text, self._pending = self._pending[:count], self._pending[count:]
        return [Piece(text, is_marker=False)] if text else []
