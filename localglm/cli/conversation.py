"""The turns of a line-mode chat: what was said, the slash commands, and one answer at a time."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from localglm.cli.answering import Answer, play
from localglm.cli.screen import closing_text, utf8
from localglm.engine.plan_text import plan_lines
from localglm.engine.protocol import ChatPrompt, Continuation, Message
from localglm.errors import LocalGlmError, UsageError
from localglm.text.thinking import Effort
from localglm.units import size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.cli.request_options import Chosen
    from localglm.cli.screen import Screen
    from localglm.engine.client import Engine
    from localglm.engine.protocol import Done


class Conversation:
    """One chat. ``run`` returns at /exit or at the end of the input."""

    def __init__(self, engine: Engine, chosen: Chosen, screen: Screen) -> None:
        self._engine = engine
        self._chosen = chosen
        self._screen = screen
        self._level = chosen.loaded.settings.think
        self._shows_thinking = bool(chosen.flags["show_thinking"])
        self._stdin = utf8(sys.stdin)
        self._is_typed = self._stdin.isatty()
        self._messages: list[Message] = []
        self._system_text = chosen.system() or ""
        self._why_whole: str | None = None
        self._is_over = False
        self._commands: dict[str, tuple[Callable[[str], None], str]] = {
            "/help": (self._help, "list the commands"),
            "/exit": (self._exit, "leave; so do /quit and Ctrl-D"),
            "/retry": (self._retry, "answer the last turn again"),
            "/continue": (self._continue, "go on with an answer that was cut"),
            "/think": (self._think, "show the thinking level, or set it: off, low, high, max"),
            "/thoughts": (self._thoughts, "show or hide the thinking"),
            "/system": (self._system, "set or drop the system message and start anew"),
            "/new": (self._new, "start a new conversation with the same system message"),
            "/stats": (self._stats, "show the totals since the model was opened"),
            "/memory": (self._memory, "show what was planned of memory and what is taken"),
        }
        self._begin()

    # -- input ---------------------------------------------------------------------------------
    def run(self) -> None:
        """Read turns until the end.

        Raises: ReaderGoneError when nobody reads the answers any more.
        """
        while not self._is_over:
            try:
                turn = self._read_turn()
                if turn is None:
                    return
                if turn.strip():
                    self._take(turn)
            except KeyboardInterrupt:
                self._screen.line("")
                self._screen.line("/exit leaves the chat")
            except LocalGlmError as error:
                for line in error.lines():
                    self._screen.line(line)

    def _read_turn(self) -> str | None:
        """Return the next turn; None at the end of the input."""
        parts: list[str] = []
        while True:
            if self._is_typed:
                self._screen.ask("... " if parts else "you: ")
            line = self._stdin.readline()
            if not line:
                return "\n".join(parts) if parts else None
            line = line.rstrip("\r\n")
            if not line.endswith("\\"):
                return "\n".join([*parts, line])
            parts.append(line[:-1])

    def _take(self, turn: str) -> None:
        if turn.startswith("//"):
            self._say(turn[1:])
        elif turn.startswith("/"):
            name, _, rest = turn.strip().partition(" ")
            name = name.lower()
            name = {"/quit": "/exit", "/bye": "/exit", "/clear": "/new"}.get(name, name)
            if name not in self._commands:
                raise UsageError(
                    f"there is no command {name}",
                    why=f"the commands are {', '.join(self._commands)}",
                    try_="two slashes send a text that begins with one",
                )
            self._commands[name][0](rest.strip())
        else:
            self._say(turn)

    # -- answers -------------------------------------------------------------------------------
    def _say(self, text: str) -> None:
        if self._messages and self._messages[-1].role == "user":
            self._messages.pop()  # a turn that got no answer is replaced
        self._messages.append(Message(role="user", content=text))
        self._reply()

    def _reply(self) -> None:
        """Answer the last turn."""
        self._why_whole = "the last turn has no answer"
        off_effort = self._chosen.loaded.settings.off_effort
        prompt = ChatPrompt(tuple(self._messages), self._level, off_effort)
        self._keep(self._answer(prompt))

    def _answer(self, prompt: ChatPrompt | Continuation) -> Answer:
        """Play one answer."""
        self._screen.label(answer="glm: " if self._is_typed else "", thinking="thinking: ")
        answer = play(
            self._engine.generate(self._chosen.generate(prompt)),
            self._screen,
            shows_answer=True,
            shows_thinking=self._shows_thinking,
        )
        if answer.done is not None:
            self._screen.line(closing_text(answer.done))
            self._note_whether_cut(answer.done)
        return answer

    def _note_whether_cut(self, done: Done) -> None:
        if done.reason not in {"cancelled", "length"}:
            self._why_whole = "the last answer ended by itself"
        elif done.usage.generated:
            self._why_whole = None
        else:
            self._why_whole = "the last turn was stopped before its answer began"

    def _keep(self, answer: Answer) -> None:
        """Add an answer, also one that was stopped, to the conversation."""
        if answer.answer or answer.thinking:
            self._messages.append(
                Message(role="assistant", content=answer.answer, reasoning=answer.thinking or None)
            )

    # -- commands ------------------------------------------------------------------------------
    def _help(self, _rest: str) -> None:
        for name, (_, text) in self._commands.items():
            self._screen.line(f"  {name:<10} {text}")

    def _exit(self, _rest: str) -> None:
        self._is_over = True

    def _retry(self, _rest: str) -> None:
        while self._messages and self._messages[-1].role == "assistant":
            self._messages.pop()
        if not self._messages or self._messages[-1].role != "user":
            raise UsageError(
                "there is nothing to answer again",
                why="no turn was sent yet",
                try_="write something first",
            )
        self._reply()

    def _continue(self, _rest: str) -> None:
        if self._why_whole is not None:
            raise UsageError(
                "there is no answer to go on with",
                why=self._why_whole,
                try_="send a turn, or /retry the last one",
            )
        more = self._answer(Continuation())
        if self._messages and self._messages[-1].role == "assistant":
            last = self._messages.pop()
            more.thinking = (last.reasoning or "") + more.thinking
            more.answer = last.content + more.answer
        self._keep(more)

    def _think(self, rest: str) -> None:
        if rest:
            self._level = Effort.parse(rest).value
        self._screen.line(f"thinking: {self._level}")

    def _thoughts(self, _rest: str) -> None:
        self._shows_thinking = not self._shows_thinking
        self._screen.line(f"the thinking is {'shown' if self._shows_thinking else 'hidden'}")

    def _system(self, rest: str) -> None:
        self._system_text = rest
        self._begin()
        what = "with this system message" if rest else "without a system message"
        self._screen.line(f"a new conversation, {what}")

    def _new(self, _rest: str) -> None:
        self._begin()
        what = ", with the same system message" if self._system_text else ""
        self._screen.line(f"a new conversation{what}")

    def _begin(self) -> None:
        system = self._system_text
        self._messages = [Message(role="system", content=system)] if system else []
        self._why_whole = "nothing was answered in this conversation"

    def _stats(self, _rest: str) -> None:
        stats = self._engine.stats()
        self._screen.line(
            f"answers {stats.requests}; prompt tokens {stats.prompt_tokens},"
            f" {stats.cached_tokens} of them kept; tokens written {stats.generated_tokens}"
        )

    def _memory(self, _rest: str) -> None:
        reply = self._engine.memory()
        if reply.plan is None:
            self._screen.line(f"the engine takes {size_text(reply.own)}")
            return
        for line in plan_lines(reply.plan):
            self._screen.line(line)
        planned = size_text(reply.plan.process)
        self._screen.line(
            f"the engine takes {size_text(reply.own)} of its own now, {planned} were planned for a"
            " full context"
        )
