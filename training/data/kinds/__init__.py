"""Every kind of conversation, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.data.conversation import Conversation
from training.data.kinds import arithmetic, copying, lookup
from training.data.kinds.together import opening, together
from training.data.pick import Exchange, Pick, Split, Want


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind. One that ``fills`` grows to the room it is given; the others are short."""

    name: str
    make: Callable[[Pick, Want], Conversation]
    fills: bool = False


def _short(name: str, ask: Callable[[Pick, Want], Exchange]) -> Kind:
    def make(pick: Pick, want: Want) -> Conversation:
        count = 1 if want.split is Split.HELD_OUT else pick.within(1, 4)
        start = opening(pick, want)
        return together(name, want, start, [ask(pick, want) for _ in range(count)])

    return Kind(name, make)


_ASKED = (arithmetic, copying)

KINDS = (
    *(_short(module.NAME, module.ask) for module in _ASKED),
    Kind(lookup.NAME, lookup.make, fills=True),
)
BY_NAME = {kind.name: kind for kind in KINDS}
