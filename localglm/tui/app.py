"""The program: one engine, one keeper of chats, and the screens."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Provider

from localglm.errors import LocalGlmError, UsageError
from localglm.tui.actions import ACTIONS, of_place
from localglm.tui.begin import Begin, Last
from localglm.tui.bridge import Bridge, Broke, Frames
from localglm.tui.chat_screen import ChatScreen
from localglm.tui.chats_screen import ChatsScreen
from localglm.tui.keeper import Keeper
from localglm.tui.palette import PaletteScreen
from localglm.tui.safe_text import one_line
from localglm.tui.status import Facts
from localglm.tui.turns import Tree
from localglm.tui.welcome import WelcomeScreen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from localglm.engine.protocol import Generate, Opened, Prompt
    from localglm.tui.finding import Found

_TWICE_S = 2.0


class Palette(Provider):
    """Offers every action of the registry."""

    async def discover(self) -> AsyncIterator[DiscoveryHit]:
        """Yield all of them."""
        for each in ACTIONS:
            if each.place in {"everywhere", "chat"}:
                yield DiscoveryHit(each.title, self._doer(each.id), help=each.help)

    async def search(self, query: str) -> AsyncIterator[Hit]:
        """Yield those that match."""
        matcher = self.matcher(query)
        for each in ACTIONS:
            words = f"{each.title} {' '.join(each.slash)}"
            score = matcher.match(words)
            if score and each.place in {"everywhere", "chat"}:
                yield Hit(score, matcher.highlight(words), self._doer(each.id), help=each.help)

    def _doer(self, name: str) -> Callable[[], None]:
        program = self.app
        assert isinstance(program, GlmApp)
        return lambda: program.act(name, "")


class GlmApp(App[None]):
    """The full-screen chat."""

    TITLE = "localglm"
    # Textual cannot lay a list out in no columns, which a very narrow terminal would leave it.
    CSS = "OptionList { min-width: 12; }"
    COMMANDS: ClassVar = {Palette}
    BINDINGS: ClassVar = [
        Binding(key, f"act('{each.id}')", each.title, show=False, priority=True)
        for each in of_place("everywhere")
        for key in each.keys
    ]

    def __init__(self, begin: Begin) -> None:
        super().__init__()
        self.begin = begin
        self.controls = begin.controls
        self.facts = Facts()
        self._device = ""
        self._model: Path | None = None
        self._interrupted = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news_context = contextvars.copy_context()
        self.frames = Frames(self._wake)
        self.bridge = Bridge(begin.make_engine, self.frames)
        self.keeper = Keeper(begin.make_shelf, lambda error: self.frames.add(Broke("keep", error)))
        self.chat = ChatScreen()

    # -- life ----------------------------------------------------------------------------------
    async def on_mount(self) -> None:
        """Show the last chat, or what was found here."""
        self._loop = asyncio.get_running_loop()
        self._news_context = contextvars.copy_context()
        self._leave_on_signals(self._loop)
        await self.push_screen(self.chat)
        model = self.begin.model or self.begin.last.model
        if model is None:
            await self.push_screen(WelcomeScreen())
        else:
            self.open_model(model)
            self.run_worker(self._survey())
        if self.begin.model is None and model is not None:
            self.run_worker(self._resume_last())

    async def _resume_last(self) -> None:
        """Show the chat of last time; the newest where that one is gone."""
        try:
            keys = [kept.key for kept in await self.keeper.chats()]
        except LocalGlmError as error:
            self.chat.panel(error)
            return
        if keys:
            last = self.begin.last.chat
            await self._resume(last if last in keys else keys[0])

    async def _resume(self, key: int) -> None:
        try:
            turns = await self.keeper.load(key)
        except LocalGlmError as error:
            self.chat.panel(error)
            return
        # Whoever has begun to write meanwhile is not interrupted.
        if self.chat.answering is None:
            self.chat.commands.show_chat(turns)

    async def _survey(self) -> None:
        self.note_machine(await asyncio.to_thread(self.begin.find_machine))

    def _leave_on_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        # Windows has no such signals for a console, and tests may run beside the main thread.
        for name in ("SIGTERM", "SIGHUP"):
            with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(getattr(signal, name), self.leave)

    def _handle_exception(self, error: Exception) -> None:
        # The terminal is given back first; then the edge of the process tells of the fault.
        super()._handle_exception(error)
        self._exit_renderables.clear()

    @property
    def fault(self) -> Exception | None:
        """What ended the program, if it was a mistake of ours."""
        return self._exception

    def leave(self) -> None:
        """End the program; what is written is kept."""
        answering = self.chat.answering
        if answering is not None:
            answering.turn.state = "stopped"
            self.chat.save(answering.turn)
        self.exit()

    def close(self) -> None:
        """End the threads; called after the terminal was given back."""
        self._loop = None
        self.bridge.close()
        self.keeper.close()
        self._keep_last(self.chat.turns.key)

    # -- frames --------------------------------------------------------------------------------
    def _wake(self, wait: float) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(self._due, wait, context=self._news_context.copy())

    def _due(self, wait: float) -> None:
        if wait > 0:
            self.set_timer(wait, self._deliver)
        else:
            self.call_next(self._deliver)

    def _deliver(self) -> None:
        batch = self.frames.take()
        if batch and self.is_running:
            self.chat.take_news(batch)

    # -- actions -------------------------------------------------------------------------------
    def action_act(self, name: str) -> None:
        """Obey a key."""
        self.act(name, "")

    def act(self, name: str, argument: str) -> None:
        """Do an action of the registry, or one of the prompt; a mistake becomes a panel."""
        handler = next((a.handler for a in ACTIONS if a.id == name), name.replace("-", "_"))
        places = (self.screen, getattr(self.screen, "commands", None), self)
        for place in places:
            do = getattr(place, f"do_{handler}", None)
            if do is not None:
                try:
                    do(argument)
                except LocalGlmError as error:
                    self.chat.panel(error)
                return

    def do_palette(self, _argument: str) -> None:
        """Open the palette."""
        if not isinstance(self.screen, PaletteScreen):
            self.push_screen(PaletteScreen(id="--command-palette"))

    def do_quit(self, _argument: str) -> None:
        """Leave."""
        self.leave()

    def do_interrupt(self, _argument: str) -> None:
        """Copy what is selected, else stop; twice leaves."""
        selected = self.screen.get_selected_text()
        now = time.monotonic()
        if selected:
            self.copy(selected)
            self.screen.clear_selection()
        elif now < self._interrupted + _TWICE_S:
            self.leave()
        else:
            self._interrupted = now
            if self.chat.answering is not None:
                self.chat.do_stop("")
            self.notify("Ctrl+C again leaves", timeout=_TWICE_S, markup=False)

    def do_help(self, _argument: str) -> None:
        """Help that every screen has."""
        self.notify(" · ".join(f"{a.title}: {a.keys[0]}" for a in ACTIONS if a.keys), markup=False)

    def do_model(self, argument: str) -> None:
        """Open another model."""
        if self.chat.answering is not None:
            self.chat.refuse_while_busy()
        if not argument:
            self.push_screen(WelcomeScreen())
            return
        from localglm import paths  # noqa: PLC0415 - only here

        self.open_model(paths.demo_model() if argument == "demo" else Path(argument).expanduser())

    # -- model ---------------------------------------------------------------------------------
    def open_model(self, path: Path) -> None:
        """Open a model in the engine."""
        self._model = path
        self.facts = Facts(model=path.name)
        try:
            self.bridge.open(self.begin.open_request(path))
        except LocalGlmError as error:
            self.chat.panel(error)

    def request(self, prompt: Prompt) -> Generate:
        """Return the request for an answer under the controls in force.

        Raises: UsageError for a value that cannot be obeyed, or without a model.
        """
        if self._model is None:
            raise UsageError("no model is open", why="none was chosen", try_="/model demo")
        return self.begin.generate_request(prompt, self.controls)

    def note_opened(self, opened: Opened) -> None:
        """Show the facts of the model that is open now."""
        name = self._model.name if self._model is not None else opened.path
        self.facts = Facts.of(opened, one_line(name, 40), self._device)
        for text in opened.notes:
            self.chat.note(f"note: {text}")
        self._keep_last(self.chat.turns.key)

    def note_machine(self, found: Found) -> None:
        """Show the device in the footer."""
        self._device = found.device
        self.facts = Facts(self.facts.model, found.device, self.facts.backend, self.facts.context)
        self.chat.show_state()

    # -- chats ---------------------------------------------------------------------------------
    def note_shown(self, tree: Tree) -> None:
        """Remember which chat to show next time."""
        self._keep_last(tree.key)

    def _keep_last(self, chat: int | None) -> None:
        if self._model is not None:
            self.begin.keep_last(Last(self._model, chat))

    def show_chats(self, words: str) -> None:
        """Open the list of chats."""
        self.chat.refuse_while_busy()
        self.push_screen(ChatsScreen(words), self._chosen)

    def _chosen(self, key: int | None) -> None:
        if key is not None:
            self.run_worker(self._resume(key))

    def forget(self, key: int) -> None:
        """Delete a chat of the list; the one that is shown is closed."""
        if self.chat.turns.key == key:
            self.keeper.delete(self.chat.turns)
            self.chat.commands.show_chat(Tree())
        else:
            self.keeper.delete_key(key)

    def export(self, tree: Tree, form: str, name: str) -> None:
        """Write a chat to a file."""
        if form not in {"md", "json", "jsonl"}:
            raise UsageError(
                f"a chat cannot be written as {form}", why="md, json or jsonl", try_="/export md"
            )
        self.run_worker(self._export(tree, form, name))

    async def _export(self, tree: Tree, form: str, name: str) -> None:
        key = await self.keeper.key_of(tree)
        if key is not None:
            await self.export_key(key, form, name, self.chat.note)

    async def export_key(self, key: int, form: str, name: str, say: Callable[[str], None]) -> None:
        """Write a chat to a file that does not exist yet, and say where."""
        path = Path(os.path.expanduser(name or f"localglm-chat-{key}.{form}"))  # noqa: PTH111, ASYNC240
        try:
            text = await self.keeper.export(key, form)
            where = await asyncio.to_thread(_write_new, path, text)
        except LocalGlmError as error:
            self.chat.panel(error)
        except OSError as error:
            why = error.strerror or str(error)
            self.chat.panel(UsageError(f"cannot write {path}", why=why, try_="name another file"))
        else:
            say(f"written to {where}")

    def copy(self, text: str) -> None:
        """Put a text on the clipboard."""
        self.copy_to_clipboard(text)
        self.notify(f"{len(text):,} characters copied", markup=False)


def _write_new(path: Path, text: str) -> Path:
    with path.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
        file.write(text)
    return path.absolute()
