"""The text side of a file without a vocabulary: ids go in, no text comes out. Enough to measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.engine.model_port import Prepared
from localglm.engine.protocol import IdsPrompt, RandomPrompt
from localglm.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.engine.model_port import FreshPrompt, Known, MarkedText, Piece


class BareText:
    """Token ids without a meaning."""

    end_of_turn: frozenset[int] = frozenset()
    close_thinking: tuple[int, ...] = ()

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size

    def prepare(self, prompt: FreshPrompt, known: Sequence[Known], limit: int) -> Prepared:  # noqa: ARG002
        """Return ids as given, or drawn evenly.

        Raises: RequestError for a prompt that is text.
        """
        match prompt:
            case IdsPrompt():
                return Prepared(list(prompt.ids))
            case RandomPrompt():
                draw = np.random.default_rng(prompt.seed).integers
                return Prepared(
                    draw(0, self.vocabulary_size, min(prompt.count, limit + 1)).tolist()
                )
        raise RequestError(
            "text cannot be read by this model file",
            why="it has no vocabulary",
            try_="use a complete model file",
        )

    def marked(self, ids: Sequence[int]) -> MarkedText:  # noqa: ARG002 - the text side's signature
        """Return no text."""
        return ()

    def output(self, prepared: Prepared) -> NoOutput:  # noqa: ARG002 - the text side's signature
        """Return a reader that says nothing."""
        return NoOutput()


class NoOutput:
    """Takes tokens and says nothing."""

    is_thinking = False

    def push(self, token: int) -> list[Piece]:  # noqa: ARG002 - the reader's signature
        """Take one token."""
        return []

    def finish(self) -> list[Piece]:
        """Return nothing."""
        return []
