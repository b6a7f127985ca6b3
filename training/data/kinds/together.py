"""Conversations of one or more exchanges within one topic."""

from __future__ import annotations

from collections.abc import Sequence

from training.data.conversation import Conversation, Turn
from training.data.pick import Exchange, Pick, Want

_SYSTEM = ("You are a helpful assistant.", "Answer briefly.", "Be precise.")


def opening(pick: Pick, want: Want) -> list[Turn]:
    """Return the system turn of one conversation in six."""
    if not pick.chance(1 / 6):
        return []
    text = f"Topic: {want.topic.name}." if pick.chance(0.5) else pick.of(_SYSTEM)
    return [Turn("system", text)]


def together(
    kind: str, want: Want, start: Sequence[Turn], exchanges: Sequence[Exchange]
) -> Conversation:
    """Put exchanges one after the other."""
    turns = list(start)
    for exchange in exchanges:
        turns.append(Turn("user", exchange.user))
        turns.append(Turn("assistant", exchange.answer, exchange.thought))
    questions = tuple(exchange.question for exchange in exchanges)
    return Conversation(kind, want.topic.name, want.effort, tuple(turns), questions)
