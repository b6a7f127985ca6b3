"""What keys and slash commands do in a chat, apart from writing answers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from localglm.engine import protocol as p
from localglm.errors import LocalGlmError, UsageError
from localglm.tui.actions import completions, help_lines
from localglm.tui.editor import edited
from localglm.tui.entries import NoteEntry, TurnEntry
from localglm.tui.reports import memory_rows, stats_rows
from localglm.tui.turns import Tree

if TYPE_CHECKING:
    from localglm.tui.bridge import Came
    from localglm.tui.chat_screen import ChatScreen
    from localglm.tui.turns import Turn

_CODE = re.compile(r"^```[^\n]*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
_LARGEST_FILE = 16 << 20


class Commands:
    """The actions of the chat screen."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen

    # -- replies on the side -------------------------------------------------------------------
    def came(self, news: Came) -> None:
        """Show a reply that was asked for."""
        screen = self._screen
        match news.reply:
            case _ if news.what == "price":
                screen.branches.priced(news.reply)
            case LocalGlmError():
                screen.panel(news.reply)
            case p.StatsReply():
                screen.transcript.add(NoteEntry(stats_rows(screen.last_done, news.reply)))
            case p.MemoryReply():
                screen.transcript.add(NoteEntry(memory_rows(news.reply)))
            case _:
                pass

    def do_stats(self, _argument: str) -> None:
        """Ask for the statistics."""
        self._screen.program.bridge.ask("stats", p.Stats(request=0))

    def do_memory(self, _argument: str) -> None:
        """Ask for the memory map."""
        self._screen.program.bridge.ask("memory", p.Memory(request=0))

    # -- thinking ------------------------------------------------------------------------------
    def do_think(self, argument: str) -> None:
        """Set the level."""
        program = self._screen.program
        program.controls = program.controls.with_level(argument)
        self._tell("the next answer: " if self._screen.answering else "")

    def do_budget(self, argument: str) -> None:
        """Set the budget, also of the running answer."""
        program = self._screen.program
        program.controls = program.controls.with_budget(argument)
        program.bridge.set_budget(program.controls.budget)
        self._tell("")

    def do_show_thinking(self, _argument: str) -> None:
        """Show or fold the thinking of every answer."""
        screen = self._screen
        screen.program.controls = screen.program.controls.shown()
        for entry in screen.transcript.entries:
            if isinstance(entry, TurnEntry):
                entry.is_open = screen.program.controls.is_shown
                screen.transcript.changed(entry)
        self._tell("")

    def _tell(self, before: str) -> None:
        self._screen.hint = before + self._screen.program.controls.text
        self._screen.show_state()

    def do_fold(self, _argument: str) -> None:
        """Open or fold the thinking of the chosen answer, else of the last."""
        transcript = self._screen.transcript
        entry = transcript.chosen_entry or self._last_entry()
        if entry is not None:
            entry.is_open = not entry.is_open
            transcript.changed(entry)

    def _last_entry(self) -> TurnEntry | None:
        entries = self._screen.transcript.entries
        turns = [e for e in entries if isinstance(e, TurnEntry) and e.turn.role == "assistant"]
        return turns[-1] if turns else None

    # -- going back ----------------------------------------------------------------------------
    def _question(self, turn: Turn | None = None) -> Turn:
        """Return the question of a turn; the last one by default."""
        path = self._screen.turns.path()
        if turn is not None:
            path = path[: path.index(turn) + 1]
        questions = [each for each in path if each.role == "user"]
        if not questions:
            raise UsageError(
                "there is no question yet", why="nothing was sent", try_="write something first"
            )
        return questions[-1]

    def do_edit(self, _argument: str) -> None:
        """Write the last question anew."""
        self._screen.branches.edit(self._question())

    def do_regenerate(self, _argument: str) -> None:
        """Answer the last question again."""
        self._screen.branches.again(self._question())

    def do_message_edit(self, _argument: str) -> None:
        """Write the chosen question anew."""
        self._screen.branches.edit(self._question(self._chosen()))

    def do_message_regenerate(self, _argument: str) -> None:
        """Answer the chosen question again."""
        self._screen.branches.again(self._question(self._chosen()))

    def _chosen(self) -> Turn | None:
        entry = self._screen.transcript.chosen_entry
        return None if entry is None else entry.turn

    def do_sibling_before(self, _argument: str) -> None:
        """Show the version before."""
        self._version(-1)

    def do_sibling_after(self, _argument: str) -> None:
        """Show the version after."""
        self._version(1)

    def _version(self, step: int) -> None:
        self._screen.branches.other_version(self._chosen() or self._screen.turns.last, step)

    # -- moving --------------------------------------------------------------------------------
    def do_focus_transcript(self, _argument: str) -> None:
        """Go to the messages."""
        self._screen.transcript.focus()

    def do_back(self, _argument: str) -> None:
        """Go back to the prompt."""
        self._screen.prompt.focus()

    def do_message_up(self, _argument: str) -> None:
        """Choose the message above."""
        self._screen.transcript.choose(-1)

    def do_message_down(self, _argument: str) -> None:
        """Choose the message below."""
        self._screen.transcript.choose(1)

    def do_complete(self, _argument: str) -> None:
        """Complete a slash command."""
        prompt = self._screen.prompt
        found = completions(prompt.text)
        if len(found) == 1:
            slash = next(s for s in found[0].slash if s.startswith(prompt.text.lower()))
            prompt.fill(slash + (" " if found[0].argument else ""))
        elif found:
            self._screen.hint = "  ".join(each.slash[0] for each in found)
            self._screen.show_state()

    # -- text ----------------------------------------------------------------------------------
    def do_message_copy(self, _argument: str) -> None:
        """Copy the chosen message."""
        entry = self._screen.transcript.chosen_entry
        if entry is not None:
            self._screen.program.copy(entry.raw)

    def do_copy(self, argument: str) -> None:
        """Copy the last answer or its last code block."""
        entry = self._last_entry()
        text = "" if entry is None else entry.raw
        if argument == "code":
            blocks = _CODE.findall(text)
            text = blocks[-1] if blocks else ""
        if not text:
            raise UsageError(
                "there is nothing to copy",
                why="the last answer has no code block" if argument == "code" else "no answer yet",
                try_="/copy",
            )
        self._screen.program.copy(text)

    def do_file(self, argument: str) -> None:
        """Add the text of a file to the prompt.

        Raises: UsageError for what is no text file.
        """
        path = Path(os.path.expanduser(argument.strip().strip("'\"")))  # noqa: PTH111 - no user is no error
        try:
            if path.stat().st_size > _LARGEST_FILE:
                raise UsageError(
                    f"{path} is too large for a prompt",
                    why="it has more than 16 MiB",
                    try_="send the part that matters",
                )
            text = path.read_bytes().decode("utf-8")
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"cannot read {path}", why=why, try_="/file PATH") from error
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{path} is no text", why="it is not UTF-8", try_="convert it first"
            ) from error
        self._screen.prompt.attach(f"file {path.name}", f"{path.name}:\n```\n{text}\n```\n")

    def do_editor(self, _argument: str) -> None:
        """Write the prompt in the editor of the user."""
        screen = self._screen
        try:
            with screen.program.suspend():
                text = edited(screen.prompt.whole)
        except SuspendNotSupported as error:
            raise UsageError(
                "an editor cannot be opened here",
                why="this terminal cannot be lent to another program",
                try_="write the text in a file, then /file PATH",
            ) from error
        screen.prompt.fill(text)
        screen.refresh()

    def do_help(self, _argument: str) -> None:
        """Show every key and command."""
        width = max(len(names) for names, _ in help_lines())
        rows = [[(f"{names:<{width}}  ", "bullet"), (text, "text")] for names, text in help_lines()]
        self._screen.transcript.add(NoteEntry([[("keys and commands", "heading")], *rows]))

    # -- chats ---------------------------------------------------------------------------------
    def do_new(self, _argument: str) -> None:
        """Begin a new chat."""
        self._screen.refuse_while_busy()
        self.show_chat(Tree(self._screen.turns.system))

    def show_chat(self, tree: Tree) -> None:
        """Show another chat."""
        screen = self._screen
        screen.turns = tree
        screen.can_continue, screen.last_done, screen.hint = False, None, ""
        screen.branches.leave()
        screen.show_tree()
        screen.prompt.remember([turn.text for turn in tree.path() if turn.role == "user"])
        screen.prompt.focus()
        screen.program.note_shown(tree)
        screen.show_state()

    def do_system(self, argument: str) -> None:
        """Set the system message and start anew."""
        self._screen.refuse_while_busy()
        self.show_chat(Tree(argument))
        self._screen.note(
            "a new chat with this system message" if argument else "a new chat, no system message"
        )

    def do_chats(self, argument: str) -> None:
        """List the chats."""
        self._screen.program.show_chats(argument)

    def do_rename(self, argument: str) -> None:
        """Give this chat another title."""
        if not argument:
            raise UsageError("a title is missing", why="nothing follows", try_="/rename TITLE")
        self._screen.program.keeper.rename(self._kept(), argument)
        self._screen.note(f"this chat is called {argument}")

    def do_delete(self, argument: str) -> None:
        """Delete this chat after a yes."""
        self._screen.refuse_while_busy()
        if argument != "yes":
            self._kept()
            self._screen.note("/delete yes deletes this chat for good")
            return
        self._screen.program.keeper.delete(self._kept())
        self.show_chat(Tree(self._screen.turns.system))

    def do_export(self, argument: str) -> None:
        """Write this chat to a file."""
        form, _, name = argument.partition(" ")
        self._screen.program.export(self._kept(), form or "md", name.strip())

    def do_fork(self, _argument: str) -> None:
        """Copy the shown path into a new chat."""
        self._screen.refuse_while_busy()
        self._kept()
        copy = self._screen.turns.copy_of_path()
        self.show_chat(copy)
        for turn in copy.path():
            self._screen.save(turn)
        self._screen.note("this is a copy; the chat it came from stays as it is")

    def _kept(self) -> Tree:
        if not self._screen.turns.root.children:
            raise UsageError(
                "this chat is empty", why="nothing was said in it yet", try_="write something first"
            )
        return self._screen.turns
