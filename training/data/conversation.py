"""One generated conversation, before it becomes tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Effort: TypeAlias = Literal["off", "low", "high", "max"]
EFFORTS: tuple[Effort, ...] = ("off", "low", "high", "max")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: function name and arguments in the order they are written."""

    name: str
    arguments: tuple[tuple[str, str | int], ...]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call, with its JSON as the template writes it."""

    spec: dict[str, Any] = field(hash=False)
    written: str = field(init=False)

    def __post_init__(self) -> None:
        """Write the JSON once."""
        object.__setattr__(self, "written", json.dumps(self.spec, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``thought`` None on an assistant turn: the prompt closes the block, empty."""

    role: Role
    content: str
    thought: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns that end in an assistant turn, whose content is the one right answer.

    ``questions`` holds the content of every question asked, in a canonical spelling: the held-out
    split is decided by it.
    """

    kind: str
    topic: str
    effort: Effort
    turns: tuple[Turn, ...]
    questions: tuple[str, ...]
    tools: tuple[Tool, ...] = ()

    @property
    def answer(self) -> str:
        """The exact answer to the last question."""
        return self.turns[-1].content


def messages(turns: tuple[Turn, ...]) -> list[dict[str, Any]]:
    """Return turns as a chat template takes them."""
    return [_message(turn) for turn in turns]


def _message(turn: Turn) -> dict[str, Any]:
    made: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.thought is not None:
        made["reasoning_content"] = turn.thought
    if turn.calls:
        made["tool_calls"] = [
            {"type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}}
            for c in turn.calls
        ]
    return made
