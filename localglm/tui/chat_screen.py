"""The chat: transcript, what goes on, prompt and footer; and one answer at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from localglm.engine import protocol as p
from localglm.errors import LocalGlmError, UsageError, WorkerError
from localglm.tui import status
from localglm.tui.actions import completions, of_place, parse_slash
from localglm.tui.answering import Answering
from localglm.tui.branches import Branches
from localglm.tui.bridge import Broke, Came, Piece, Restarted
from localglm.tui.commands import Commands
from localglm.tui.entries import NoteEntry, TurnEntry
from localglm.tui.prompt import Prompt
from localglm.tui.transcript import Transcript
from localglm.tui.turns import Tree, Turn

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from localglm.tui.app import GlmApp
    from localglm.tui.bridge import News

_AT_PROMPT = "Enter sends · Ctrl+R chats · Ctrl+T thinking · Ctrl+P every action · F1 help"
_AT_MESSAGE = "Up Down choose · Space thinking · E edit · R again · Y copy · Left Right versions"
_SAVE_S = 1.0
_PRIORITY = {"escape", "enter", "shift+enter", "ctrl+j"}


class ChatScreen(Screen[None]):
    """One chat."""

    CSS = """
    ChatScreen #activity { height: 1; color: $text-accent; padding: 0 2; }
    ChatScreen #footer { height: 1; color: $text-muted; padding: 0 2; }
    """
    BINDINGS: ClassVar = [
        *(
            Binding(key, f"act('{each.id}')", each.title, show=False, priority=True)
            for each in of_place("chat")
            for key in each.keys
            if key not in _PRIORITY
        ),
        Binding("escape", "act('stop')", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.turns = Tree()
        self.answering: Answering | None = None
        self.last_done: p.Done | None = None
        self.can_continue = False
        self.is_stopping = False
        self.hint = ""
        self.queued: str | None = None
        self._progress = ""
        self._saved = 0.0
        self._offers = False
        self._is_silent = True
        self.branches = Branches(self)
        self.commands = Commands(self)

    @property
    def program(self) -> GlmApp:
        """The program this screen belongs to."""
        return cast("GlmApp", self.app)

    # -- layout --------------------------------------------------------------------------------
    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Transcript(id="transcript")
        yield Static("", id="activity", markup=False)
        yield Prompt(id="prompt")
        yield Static("", id="footer", markup=False)

    def on_mount(self) -> None:
        """Begin to write."""
        self.transcript = self.query_one(Transcript)
        self.prompt = self.query_one(Prompt)
        self._activity = self.query_one("#activity", Static)
        self._footer = self.query_one("#footer", Static)
        self.prompt.focus()
        self._ticker = self.set_interval(0.5, self._tick, pause=True)
        self.show_state()

    def on_descendant_focus(self) -> None:
        """Say what the keys do here."""
        self.call_after_refresh(self.show_state)

    def on_resize(self) -> None:
        """Fit the footer."""
        self.call_after_refresh(self.show_state)

    def show_state(self) -> None:
        """Write the two status lines."""
        answering = self.answering
        used = 0
        rate = None
        if answering is not None:
            used, rate = answering.used, answering.rate
        elif self.last_done is not None:
            used = self.last_done.usage.prompt + self.last_done.usage.generated
            rate = self.last_done.timings.decode_tokens_per_s
        program = self.program
        width = self.size.width - 4
        footer = status.footer(program.facts, program.controls, used, rate, width)
        # One line each: nothing around them moves.
        self._footer.update(footer, layout=False)
        self._activity.update(self._activity_text(), layout=False)

    def _activity_text(self) -> str:
        answering = self.answering
        if answering is None:
            usual = _AT_MESSAGE if self.transcript.has_focus else _AT_PROMPT
            return self._progress or self.hint or usual
        waiting = " · one message waits" if self.queued else ""
        if self.is_stopping:
            return "stopping" + waiting
        if answering.tokens:
            rate = "" if answering.rate is None else f" · {answering.rate:.1f} tok/s"
            verb = "thinking" if answering.is_thinking else "writing"
            now = " · F3 answers now" if answering.is_thinking else ""
            return f"{verb} · {answering.tokens:,} tokens{rate}{now} · Esc stops{waiting}"
        if answering.prefill is not None:
            return status.prefill_line(answering.prefill, self.size.width - 4) + waiting
        return (self._progress or "waiting for the engine · Esc stops") + waiting

    def _tick(self) -> None:
        if self.answering is not None:
            self.answering.tick()
            if self.answering.is_thinking:
                self.transcript.changed(self.answering.entry)
            self.show_state()

    # -- news ----------------------------------------------------------------------------------
    def take_news(self, batch: list[News]) -> None:
        """Show what the engine did since the last frame."""
        grown = False
        for news in batch:
            match news:
                case p.Loading():
                    self._progress = status.loading_line(news)
                case p.Opened():
                    self._progress = ""
                    self.program.note_opened(news)
                case Came():
                    self.commands.came(news)
                case Restarted():
                    self._progress = ""
                    self.note("the engine runs again; it reads this chat anew at the next answer")
                case Broke(was="generate"):
                    self._broke(news)
                case Broke():
                    self._progress = ""
                    self.panel(news.error)
                case _:
                    grown = self._grow(news) or grown
        if grown and self.answering is not None:
            self.transcript.changed(self.answering.entry)
            self._save_sometimes(self.answering.turn)
        # While text comes, the figures change with the clock.
        if not grown or self._is_silent or self.answering is None:
            self._is_silent = not grown
            self.show_state()

    def _grow(self, news: News) -> bool:
        answering = self.answering
        if answering is None:
            return False
        answering.take(news)
        if isinstance(news, p.Done):
            self.last_done = news
            self.can_continue = answering.turn.state in {"stopped", "cut"}
            self._finish(answering)
            return False
        return isinstance(news, Piece | p.Notice | p.ToolCall)

    def _broke(self, news: Broke) -> None:
        self.can_continue = False
        answering = self.answering
        if answering is not None:
            answering.take(news)
            self._finish(answering)
        self.panel(news.error)
        if isinstance(news.error, WorkerError):
            self._progress = "the engine is started again"

    def _finish(self, answering: Answering) -> None:
        self.answering = None
        self.is_stopping = False
        self._ticker.pause()
        turn = answering.turn
        if not turn.text and not turn.thinking and not answering.entry.notices:
            self.turns.remove(turn)
            self.transcript.take_out(answering.entry)
            if turn.state == "stopped":
                self.note("stopped before the answer began; F5 asks again")
        else:
            self.transcript.changed(answering.entry)
            self.save(turn)
        if self.queued is not None:
            text, self.queued = self.queued, None
            self.say(text)

    # -- notes ---------------------------------------------------------------------------------
    def note(self, text: str) -> None:
        """Show a remark of the program."""
        self.transcript.add(NoteEntry.text(text))

    def panel(self, error: LocalGlmError) -> None:
        """Show what failed, why, and what to try."""
        self.transcript.add(NoteEntry.error(error))

    # -- writing -------------------------------------------------------------------------------
    def on_prompt_wanted(self, event: Prompt.Wanted) -> None:
        """Obey a key of the prompt."""
        event.stop()
        self.act(event.name)

    def on_text_area_changed(self) -> None:
        """Offer the commands that begin with what is written."""
        text = self.prompt.text
        if text.startswith("/") and " " not in text and not text.startswith("//"):
            self.hint = "  ".join(each.slash[0] for each in completions(text)) or "/help lists all"
            self._offers = True
        elif self._offers:
            self.hint, self._offers = "", False
        else:
            return
        self.show_state()

    def action_act(self, name: str) -> None:
        """Obey a key."""
        self.act(name)

    def act(self, name: str, argument: str = "") -> None:
        """Do an action; a mistake is shown as a panel."""
        self.program.act(name, argument)

    def do_send(self, _argument: str) -> None:
        """Send the prompt: a command, or something to answer."""
        text = self.prompt.whole
        if not text.strip():
            if self.answering is not None and self.answering.is_thinking:
                self.do_answer_now("")
            return
        if text.startswith("/") and not text.startswith("//"):
            action, argument = parse_slash(text)
            self.prompt.take()
            self.act(action.id, argument)
            return
        self.prompt.take()
        self.say(text[1:] if text.startswith("//") else text)

    def say(self, text: str) -> None:
        """Send a question below the turn that is to be answered."""
        if self.answering is not None:
            self.queued = text if self.queued is None else f"{self.queued}\n{text}"
            self.show_state()
            return
        parent = self.branches.take_parent()
        question = self.turns.add(Turn("user", text), parent)
        if parent is not None:
            self.show_tree()
        else:
            self.transcript.add(TurnEntry(question))
        self.save(question)
        self.ask(question)

    def ask(self, question: Turn) -> None:
        """Answer a question of the shown path."""
        answer = self.turns.add(Turn("assistant"), question)
        self._run(answer, p.ChatPrompt(self.turns.messages(question), self.program.controls.level))

    def _run(self, turn: Turn, prompt: p.Prompt) -> None:
        try:
            request = self.program.request(prompt)
        except LocalGlmError:
            if not turn.text and not turn.thinking:
                self.turns.remove(turn)
            raise
        entry = self.entry_of(turn)
        if entry is None:
            entry = TurnEntry(turn, is_open=self.program.controls.is_shown)
            self.answering = Answering(entry)
            self.transcript.add(entry)
        else:
            self.answering = Answering(entry)
        self.hint = ""
        self.can_continue = False
        self._ticker.resume()
        self.program.bridge.generate(request)
        self.show_state()

    def entry_of(self, turn: Turn) -> TurnEntry | None:
        """Return where a turn is shown."""
        for entry in self.transcript.entries:
            if isinstance(entry, TurnEntry) and entry.turn is turn:
                return entry
        return None

    def show_tree(self) -> None:
        """Show the path of the tree anew."""
        is_open = self.program.controls.is_shown
        self.transcript.replace([TurnEntry(turn, is_open=is_open) for turn in self.turns.path()])

    # -- the running answer --------------------------------------------------------------------
    def do_stop(self, _argument: str) -> None:
        """Stop; what waits or is chosen goes back first."""
        if self.queued is not None:
            self.prompt.fill(self.queued)
            self.queued = None
        elif self.answering is not None:
            self.is_stopping = True
            self.program.bridge.cancel()
        else:
            self.branches.leave()
            self.hint = ""
        self.prompt.focus()
        self.show_state()

    def do_answer_now(self, _argument: str) -> None:
        """End the thinking."""
        if self.answering is None:
            raise UsageError(
                "nothing is thinking", why="no answer is written now", try_="send something"
            )
        self.program.bridge.end_thinking()

    def do_continue(self, _argument: str) -> None:
        """Go on with the answer that was stopped."""
        self.refuse_while_busy()
        last = self.turns.last
        if not self.can_continue or last.role != "assistant":
            raise UsageError(
                "there is no answer to go on with",
                why="the last answer is complete, or the engine has moved on since",
                try_="F5 answers again",
            )
        self._run(last, p.Continuation())

    def refuse_while_busy(self) -> None:
        """Refuse what needs the engine.

        Raises: UsageError while an answer is written.
        """
        if self.answering is not None:
            raise UsageError(
                "an answer is being written", why="one is written at a time", try_="Esc stops it"
            )

    # -- keeping -------------------------------------------------------------------------------
    def _save_sometimes(self, turn: Turn) -> None:
        now = time.monotonic()
        if now >= self._saved + _SAVE_S:
            self._saved = now
            self.save(turn)

    def save(self, turn: Turn) -> None:
        """Keep a turn; the first one makes the chat."""
        self.program.keeper.save(self.turns, turn)
