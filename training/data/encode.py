"""Conversations to token ids, exactly as the program encodes the prompt it renders.

Each run of text between two markers is encoded by itself, as ``localglm.text`` does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from training.data.conversation import Conversation, Effort, Tool, Turn
from training.data.vocabulary import IDS, MARKERS, Encoder

_LEVELS: dict[Effort, str] = {"off": "Low", "low": "Low", "high": "High", "max": "Max"}
_TOOLS_BEFORE = (
    "# Tools\n\nThese functions can be called. Each line between the tags describes one of them in"
    " JSON.\n<tools>\n"
)
_TOOLS_AFTER = (
    "</tools>\n\nWrite a call in exactly this form, with one key and one value for each argument:\n"
    "<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>"
)
_MARKER = re.compile("(" + "|".join(map(re.escape, MARKERS)) + ")")


@dataclass(slots=True)
class Encoded:
    """Ids and, for each, 1 where the model is to predict it."""

    ids: list[int] = field(default_factory=list)
    taught: bytearray = field(default_factory=bytearray)

    def add(self, ids: list[int], *, taught: bool = False) -> None:
        """Append ids."""
        self.ids += ids
        self.taught += (b"\1" if taught else b"\0") * len(ids)


class Writer:
    """Encodes conversations with one encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encode = encoder.encode
        self._starts = {level: self._start(text) for level, text in _LEVELS.items()}

    def whole(self, conversation: Conversation) -> Encoded:
        """Encode a conversation with the marker that ends its last turn."""
        out = Encoded()
        out.add(self._starts[conversation.effort])
        if conversation.tools:
            out.add(self._tool_turn(conversation.tools))
        before: Turn | None = None
        for turn in conversation.turns:
            self._turn(out, turn, before)
            before = turn
        out.add([_end(conversation.turns[-1])], taught=True)
        return out

    def prompt(self, conversation: Conversation) -> list[int]:
        """Return the prompt of the last turn: up to the open, or for no thought closed, block."""
        before = Encoded()
        self._answer(before, conversation.turns[-1])
        cut = len(before.ids) - before.taught.count(1)
        out = self.whole(conversation)
        return out.ids[: len(out.ids) - 1 - len(before.ids) + cut]

    def _turn(self, out: Encoded, turn: Turn, before: Turn | None) -> None:
        if turn.role == "system":
            out.add([IDS["<|system|>"], *self._encode(turn.content)])
        elif turn.role == "user":
            out.add([IDS["<|user|>"]], taught=_ends_with(before, "user"))
            out.add(self._encode(turn.content))
        elif turn.role == "tool":
            if before is None or before.role != "tool":
                out.add([IDS["<|observation|>"]], taught=_ends_with(before, "tool"))
            out.add(self._between("<tool_response>", turn.content, "</tool_response>"))
        else:
            self._answer(out, turn)

    def _answer(self, out: Encoded, turn: Turn) -> None:
        out.add([IDS["<|assistant|>"], IDS["<think>"]])
        if turn.thought is None:
            out.add([IDS["</think>"]])
        else:
            out.add([*self._encode(turn.thought), IDS["</think>"]], taught=True)
        out.add(self._encode(turn.content), taught=True)
        for call in turn.calls:
            out.add([IDS["<tool_call>"], *self._encode(call.name)], taught=True)
            for key, value in call.arguments:
                out.add(self._between("<arg_key>", key, "</arg_key>"), taught=True)
                out.add(self._between("<arg_value>", str(value), "</arg_value>"), taught=True)
            out.add([IDS["</tool_call>"]], taught=True)

    def _start(self, level: str) -> list[int]:
        opening = [IDS["[gMASK]"], IDS["<sop>"], IDS["<|system|>"]]
        return opening + self._encode(f"Reasoning Effort: {level}")

    def _tool_turn(self, tools: tuple[Tool, ...]) -> list[int]:
        # The parts of the split rule may cross the edges of the list, so all is encoded as one.
        listed = "".join(f"{tool.written}\n" for tool in tools)
        return [IDS["<|system|>"], *self._marked(_TOOLS_BEFORE + listed + _TOOLS_AFTER)]

    def _marked(self, text: str) -> list[int]:
        """Encode text whose markers are meant."""
        ids: list[int] = []
        for part in _MARKER.split(text):
            ids += [IDS[part]] if part in IDS else self._encode(part)
        return ids

    def _between(self, opening: str, text: str, closing: str) -> list[int]:
        return [IDS[opening], *self._encode(text), IDS[closing]]


def _ends_with(before: Turn | None, following: str) -> bool:
    """Tell whether a role marker is also the end that the turn before has to write."""
    if before is None or before.role != "assistant":
        return False
    return bool(before.calls) == (following == "tool")


def _end(turn: Turn) -> int:
    return IDS["<|observation|>" if turn.calls else "<|user|>"]
