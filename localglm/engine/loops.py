"""Noticing that a model repeats itself: one short pattern over and over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

THINKING_SPAN = 256
ANSWER_SPAN = 1024
LONGEST_PATTERN = 64


def is_repeating(tokens: Sequence[int], span: int, longest: int = LONGEST_PATTERN) -> bool:
    """Whether the last ``span`` tokens repeat a pattern of at most ``longest`` tokens."""
    if len(tokens) < span:
        return False
    tail = list(tokens[-span:])
    return any(
        tail[-1] == tail[-1 - period] and tail[period:] == tail[:-period]
        for period in range(1, longest + 1)
    )
