"""Every kind of conversation, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from training.data.conversation import Conversation
from training.data.kinds import (
    about,
    arithmetic,
    chinese,
    copying,
    counting,
    lookup,
    memory,
    reversing,
    sorting,
    tools,
    units,
    unknown,
    writing,
)
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
        count = 1 if want.split is Split.HELD_OUT else pick.within(1, 3)
        start = opening(pick, want)
        return together(name, want, start, [ask(pick, want) for _ in range(count)])

    return Kind(name, make)


_ASKED = (
    about, arithmetic, copying, reversing, sorting, counting, units, writing, chinese, unknown,
)  # fmt: skip


def _mixed(pick: Pick, want: Want) -> Conversation:
    count = 2 if want.split is Split.HELD_OUT else pick.within(2, 6)
    start = opening(pick, want)
    return together("mixed", want, start, [pick.of(_ASKED).ask(pick, want) for _ in range(count)])


KINDS = (
    *(_short(module.NAME, module.ask) for module in _ASKED),
    Kind("mixed", _mixed),
    Kind(tools.NAME, tools.make),
    Kind(memory.NAME, memory.make, fills=True),
    Kind(lookup.NAME, lookup.make, fills=True),
)
BY_NAME = {kind.name: kind for kind in KINDS}
