"""Going back in a chat: edit, answer again, other versions, and what that costs beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.engine import protocol as p
from localglm.errors import UsageError
from localglm.tui.entries import TurnEntry
from localglm.units import duration_text

if TYPE_CHECKING:
    from localglm.tui.chat_screen import ChatScreen
    from localglm.tui.turns import Turn

_CHEAP_TOKENS = 256


class Branches:
    """What the user is about to branch off from."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._editing: Turn | None = None
        self._again: Turn | None = None
        self._price: str | None = None

    def take_parent(self) -> Turn | None:
        """Return the turn the next question stands below, where one is edited; once."""
        editing, self._editing = self._editing, None
        return None if editing is None else editing.parent

    def leave(self) -> None:
        """Give up what was begun."""
        if self._editing is not None:
            self._screen.prompt.fill("")
        self._editing = self._again = None

    # -- begin ---------------------------------------------------------------------------------
    def edit(self, turn: Turn) -> None:
        """Put a question in the prompt and ask what sending it would read."""
        self._screen.refuse_while_busy()
        self._again = None
        self._editing = turn
        self._screen.prompt.fill(turn.text)
        self._screen.prompt.focus()
        self._ask_price(turn)

    def again(self, question: Turn) -> None:
        """Answer a question again: at once where that is cheap, else after a second wish."""
        self._screen.refuse_while_busy()
        if self._again is question and self._price is not None:
            self._go()
            return
        self._editing = None
        self._again = question
        self._ask_price(question)

    def _ask_price(self, question: Turn) -> None:
        self._price = None
        screen = self._screen
        messages = screen.turns.messages(question)
        prompt = p.ChatPrompt(messages, screen.program.controls.level)
        screen.hint = "asking what it would read again"
        screen.program.bridge.ask("price", p.Plan(request=0, prompt=prompt))
        screen.show_state()

    # -- price ---------------------------------------------------------------------------------
    def priced(self, reply: object) -> None:
        """Say what it costs, and go on where that is little."""
        screen = self._screen
        if isinstance(reply, p.PlanReply):
            price = f"reads {reply.read:,} of {reply.total:,} tokens again"
            done = screen.last_done
            rate = done.timings.prefill_tokens_per_s if done is not None else None
            if rate:
                price += f", about {duration_text(reply.read / rate)}"
            is_cheap = reply.read <= _CHEAP_TOKENS
        else:
            price, is_cheap = "the price is not known", False
        self._price = price
        if self._editing is not None:
            screen.hint = f"editing: this {price} · Enter sends as a branch · Esc leaves it"
        elif self._again is not None and is_cheap:
            self._go()
        elif self._again is not None:
            screen.hint = f"answering again {price} · F5 does it · Esc leaves it"
        screen.show_state()

    def _go(self) -> None:
        question, self._again = self._again, None
        if question is not None and self._screen.answering is None:
            question.shown_child = None
            self._screen.show_tree()
            self._screen.ask(question)
            self._screen.transcript.changed(self._screen.transcript.entries[-1], follows=True)

    # -- versions ------------------------------------------------------------------------------
    def other_version(self, turn: Turn, step: int) -> None:
        """Show the version before or after a turn."""
        screen = self._screen
        screen.refuse_while_busy()
        found = screen.turns.sibling(turn, step)
        if found is None:
            raise UsageError(
                f"there is no version {'before' if step < 0 else 'after'} this one",
                why="edit or answer again to make one",
                try_="F5 answers again",
            )
        screen.can_continue = False
        screen.show_tree()
        entries = screen.transcript.entries
        turns = [entry.turn if isinstance(entry, TurnEntry) else None for entry in entries]
        if screen.transcript.has_focus:
            screen.transcript.chosen = turns.index(found)
            screen.transcript.choose(0)
