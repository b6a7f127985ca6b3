"""Playing one request: events become text on the two streams, Ctrl-C becomes a cancel."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from localglm.cli.screen import prefill_text
from localglm.engine import protocol as p
from localglm.errors import LocalGlmError

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from localglm.cli.screen import Screen
    from localglm.engine.client import Generation


@dataclass(slots=True)
class Answer:
    """What came of a request so far."""

    answer: str = ""
    thinking: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    done: p.Done | None = None


class Interrupts:
    """While it is entered, Ctrl-C cancels the request; a second one interrupts the program."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._before: Any = None
        self.count = 0

    def __enter__(self) -> Self:
        # Handlers can only be set on the main thread; elsewhere nobody sends Ctrl-C.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt
        self._generation.cancel()


def play(
    generation: Generation, screen: Screen, *, shows_answer: bool, shows_thinking: bool
) -> Answer:
    """Write a request's text as it comes and return all of it; the last line of it is ended.

    Raises: the error that ended the request; ReaderGoneError; KeyboardInterrupt at a second Ctrl-C.
    """
    out = Answer()
    try:
        with Interrupts(generation):
            for event in generation:
                _take(event, out, screen, shows_answer=shows_answer, shows_thinking=shows_thinking)
    except (LocalGlmError, KeyboardInterrupt):
        screen.end_text()
        raise
    screen.end_text()
    return out


def _take(
    event: p.Event, out: Answer, screen: Screen, *, shows_answer: bool, shows_thinking: bool
) -> None:
    match event:
        case p.Delta(kind="answer"):
            out.answer += event.text
            if shows_answer:
                screen.answer(event.text)
        case p.Delta():
            out.thinking += event.text
            if shows_thinking:
                screen.aside(event.text)
            else:
                screen.status("thinking")
        case p.Prefill():
            screen.status(prefill_text(event))
        case p.ToolCall():
            out.tool_calls.append({"name": event.name, "arguments": event.arguments})
        case p.Notice():
            out.notices.append(event.text)
            screen.line(f"note: {event.text}")
        case p.Done():
            out.done = event
        case _:
            pass
