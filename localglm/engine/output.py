"""From generated ids to what the user reads, without stop strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.engine.protocol import Delta, ToolCall
from localglm.engine.stops import StopMatcher

if TYPE_CHECKING:
    from localglm.engine.model_port import OutputPort, Piece


class Output:
    """The text side of one answer. Stop strings end answers, never the thinking."""

    def __init__(self, request: int, reader: OutputPort, stops: tuple[str, ...]) -> None:
        self._request = request
        self._reader = reader
        self._stops = StopMatcher(stops)
        self.has_tool_calls = False

    @property
    def is_thinking(self) -> bool:
        """Whether the next token belongs to a thinking block."""
        return self._reader.is_thinking

    @property
    def matched_stop(self) -> str | None:
        """The stop string that was found."""
        return self._stops.matched

    def push(self, token: int) -> list[Delta | ToolCall]:
        """Take one token and return what became certain."""
        return self._events(self._reader.push(token))

    def finish(self) -> list[Delta | ToolCall]:
        """Return what was held back; text after a stop string stays away."""
        events = self._events(self._reader.finish())
        if rest := self._stops.finish():
            events.append(self._delta("answer", rest))
        return events

    def _events(self, pieces: list[Piece]) -> list[Delta | ToolCall]:
        out: list[Delta | ToolCall] = []
        for piece in pieces:
            if piece.kind == "tool_call":
                self.has_tool_calls = True
                call = ToolCall(request=self._request, name=piece.name, arguments=piece.arguments)
                out.append(call)
            elif piece.kind == "thinking":
                out.append(self._delta("thinking", piece.text))
            elif text := self._stops.push(piece.text):
                out.append(self._delta("answer", text))
        return [event for event in out if not isinstance(event, Delta) or event.text]

    def _delta(self, kind: str, text: str) -> Delta:
        return Delta(
            request=self._request, kind="thinking" if kind == "thinking" else "answer", text=text
        )
