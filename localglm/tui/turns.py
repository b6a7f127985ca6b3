"""A chat as a tree of turns: versions of a question or answer are siblings, one path is shown."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from localglm.engine.protocol import Message

if TYPE_CHECKING:
    from collections.abc import Iterator

State: TypeAlias = Literal["writing", "complete", "stopped", "cut", "broken"]
"""``cut``: at a limit or by the loop guard; ``broken``: the engine ended in the middle."""


@dataclass(slots=True)
class Turn:
    """One question or answer. ``key`` is its number in the store, once it is kept."""

    role: Literal["user", "assistant"]
    text: str = ""
    thinking: str = ""
    state: State = "complete"
    parent: Turn | None = None
    children: list[Turn] = field(default_factory=list)
    shown_child: Turn | None = None
    thinking_tokens: int = 0
    thinking_s: float = 0.0
    key: int | None = None
    number: int = field(default_factory=itertools.count().__next__)


class Tree:
    """The turns of one chat. ``key`` names it in the store; a forgotten one is not kept again."""

    def __init__(self, system: str = "") -> None:
        self.system = system
        self.key: int | None = None
        self.is_forgotten = False
        self.root = Turn("assistant")

    def path(self) -> list[Turn]:
        """Return the turns that are shown, from the first to the last."""
        out: list[Turn] = []
        turn = self.root.shown_child
        while turn is not None:
            out.append(turn)
            turn = turn.shown_child
        return out

    @property
    def last(self) -> Turn:
        """The last turn shown; the root of an empty chat."""
        path = self.path()
        return path[-1] if path else self.root

    def add(self, turn: Turn, parent: Turn | None = None) -> Turn:
        """Add a turn below ``parent``, by default the last one, and show it."""
        parent = self.last if parent is None else parent
        turn.parent = parent
        parent.children.append(turn)
        parent.shown_child = turn
        return turn

    def remove(self, turn: Turn) -> None:
        """Take a turn out again, with what is below it."""
        parent = turn.parent
        if parent is None:
            return
        parent.children.remove(turn)
        if parent.shown_child is turn:
            parent.shown_child = parent.children[-1] if parent.children else None

    def sibling(self, turn: Turn, step: int) -> Turn | None:
        """Show the version before or after; None where there is none."""
        if turn.parent is None:
            return None
        place = turn.parent.children.index(turn) + step
        if not 0 <= place < len(turn.parent.children):
            return None
        turn.parent.shown_child = turn.parent.children[place]
        return turn.parent.shown_child

    def messages(self, upto: Turn | None = None) -> tuple[Message, ...]:
        """Return the messages of the shown path, to ``upto`` and with it."""
        out = [Message(role="system", content=self.system)] if self.system else []
        for turn in self.path():
            if turn.role == "user":
                out.append(Message(role="user", content=turn.text))
            elif turn.text or turn.thinking:
                thinking = turn.thinking or None
                out.append(Message(role="assistant", content=turn.text, reasoning=thinking))
            if turn is upto:
                break
        return tuple(out)

    def copy_of_path(self) -> Tree:
        """Return a new chat with the turns that are shown."""
        out = Tree(self.system)
        for turn in self.path():
            out.add(replace(turn, parent=None, children=[], shown_child=None, key=None))
        return out

    def everything(self) -> Iterator[Turn]:
        """Yield every turn, parents first."""
        waiting = list(self.root.children)
        while waiting:
            turn = waiting.pop(0)
            yield turn
            waiting += turn.children


def version_of(turn: Turn) -> tuple[int, int]:
    """Return which version of how many this is, from one."""
    siblings = turn.parent.children if turn.parent is not None else [turn]
    return siblings.index(turn) + 1, len(siblings)
