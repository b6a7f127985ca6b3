"""Everything the user can do, written once: keys, palette, slash commands and help come from here.

An action names the method that does it, ``do_<handler>(argument)``, looked for on the open screen
and then on the program. Knows nothing of widgets.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeAlias

from localglm.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

Place: TypeAlias = Literal["everywhere", "chat", "transcript", "chats"]
"""Where an action applies: ``transcript`` is a chosen message, ``chats`` the list of chats."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the user can do. ``argument`` says what the slash command takes after its name."""

    id: str
    title: str
    help: str
    handler: str
    place: Place = "chat"
    keys: tuple[str, ...] = ()
    slash: tuple[str, ...] = ()
    argument: str = ""


ACTIONS: tuple[Action, ...] = (
    Action("send", "Send", "Send what is written; shift+enter or ctrl+j makes a new line.",
           "send", keys=("enter",)),
    Action("newline", "New line", "Begin a new line in the prompt; so does a backslash at its end.",
           "newline", keys=("shift+enter", "ctrl+j")),
    Action("stop", "Stop", "Stop the answer; what was written stays and can be continued.",
           "stop", keys=("escape",), slash=("/stop",)),
    Action("answer-now", "Answer now", "End the thinking and begin the answer.",
           "answer_now", keys=("f3",), slash=("/now",)),
    Action("continue", "Continue", "Go on with an answer that was stopped; nothing is read again.",
           "continue", keys=("f4",), slash=("/continue",)),
    Action("regenerate", "Regenerate", "Answer the last question again, beside the first answer.",
           "regenerate", keys=("f5",), slash=("/regen", "/retry", "/regenerate")),
    Action("edit", "Edit", "Write the last question anew; the old one stays as a branch.",
           "edit", keys=("f6",), slash=("/edit",)),
    Action("think", "Thinking level", "Set how much to think first: off, low, high or max.",
           "think", keys=("ctrl+t",), slash=("/think", "/effort"), argument="[off|low|high|max]"),
    Action("budget", "Thinking budget", "End the thinking after so many tokens; none for no limit.",
           "budget", slash=("/budget",), argument="[TOKENS|none]"),
    Action("show-thinking", "Show thinking", "Show or hide the thinking of every answer.",
           "show_thinking", keys=("f7",), slash=("/show-thinking", "/thoughts")),
    Action("new", "New chat", "Begin a new chat; this one stays in the list.",
           "new", keys=("ctrl+n",), slash=("/new", "/clear")),
    Action("chats", "Chats", "List, search, rename, delete and export the chats.",
           "chats", keys=("ctrl+r",), slash=("/chats", "/resume", "/search"), argument="[WORDS]"),
    Action("rename", "Rename chat", "Give this chat another title.",
           "rename", slash=("/rename",), argument="TITLE"),
    Action("delete", "Delete chat", "Delete this chat; asks first.", "delete", slash=("/delete",)),
    Action("export", "Export chat", "Write this chat to a file, as md, json or jsonl.",
           "export", slash=("/export",), argument="[md|json|jsonl] [FILE]"),
    Action("fork", "Fork chat", "Copy this chat up to here into a new one.",
           "fork", slash=("/fork",)),
    Action("system", "System message", "Set the system message of this chat, or drop it.",
           "system", slash=("/system",), argument="[TEXT]"),
    Action("file", "Attach a file", "Add the text of a file to the prompt.",
           "file", slash=("/file", "/read"), argument="PATH"),
    Action("editor", "External editor", "Write the prompt in $VISUAL or $EDITOR.",
           "editor", keys=("ctrl+g",), slash=("/editor",)),
    Action("copy", "Copy", "Copy the last answer as Markdown; with code, its last code block.",
           "copy", slash=("/copy",), argument="[code]"),
    Action("stats", "Statistics", "Show where the time of the last answer went.",
           "stats", slash=("/stats",)),
    Action("memory", "Memory", "Show what lies in memory, as bars.",
           "memory", slash=("/memory",)),
    Action("model", "Model", "Open another model: a GGUF file, a folder, or the word demo.",
           "model", "everywhere", slash=("/model", "/load"), argument="[PATH|demo]"),
    Action("help", "Help", "Show the keys and commands.",
           "help", "everywhere", keys=("f1",), slash=("/help", "/?", "/keys")),
    Action("palette", "Palette", "Search every action by name.",
           "palette", "everywhere", keys=("ctrl+p",)),
    Action("quit", "Quit", "Leave; the chat is kept.",
           "quit", "everywhere", keys=("ctrl+q",), slash=("/exit", "/quit", "/bye")),
    Action("interrupt", "Copy or stop", "Copy what is selected, else stop; twice leaves.",
           "interrupt", "everywhere", keys=("ctrl+c",)),
    Action("message-up", "Message above", "Choose the message above.",
           "message_up", "transcript", keys=("up", "k")),
    Action("message-down", "Message below", "Choose the message below.",
           "message_down", "transcript", keys=("down", "j")),
    Action("fold", "Open or fold the thinking", "Show or hide the thinking of the message.",
           "fold", "transcript", keys=("space",)),
    Action("sibling-before", "Version before", "Show the version before this one.",
           "sibling_before", "transcript", keys=("left",), slash=("/before",)),
    Action("sibling-after", "Version after", "Show the version after this one.",
           "sibling_after", "transcript", keys=("right",), slash=("/after",)),
    Action("message-edit", "Edit this message", "Write this question anew, as a branch.",
           "message_edit", "transcript", keys=("e",)),
    Action("message-regenerate", "Regenerate from here", "Answer this question again.",
           "message_regenerate", "transcript", keys=("r",)),
    Action("message-copy", "Copy this message", "Copy the message as Markdown.",
           "message_copy", "transcript", keys=("y",)),
    Action("back", "Back to the prompt", "Go back to writing.",
           "back", "transcript", keys=("i", "tab")),
    Action("chat-open", "Open chat", "Open the chosen chat.", "open", "chats", keys=("enter",)),
    Action("chat-rename", "Rename chat", "Give the chosen chat another title.",
           "rename_chosen", "chats", keys=("f2",)),
    Action("chat-delete", "Delete chat", "Delete the chosen chat; asks first.",
           "delete_chosen", "chats", keys=("delete", "ctrl+x")),
    Action("chat-export", "Export chat", "Write the chosen chat to a Markdown file.",
           "export_chosen", "chats", keys=("ctrl+e",)),
    Action("chats-close", "Close", "Go back to the chat.", "close", "chats", keys=("escape",)),
)  # fmt: skip

_OLLAMA = {
    "/set think": "/think high",
    "/set nothink": "/think off",
    "/set system": "/system",
    "/set verbose": "/stats",
    "/show info": "/stats",
    "/show": "/stats",
}
"""What users of another program type, and what it means here."""


def action(name: str) -> Action:
    """Return the action with this id."""
    return next(each for each in ACTIONS if each.id == name)


def of_place(*places: Place) -> Iterator[Action]:
    """Yield the actions that apply in one of the places."""
    return (each for each in ACTIONS if each.place in places)


def parse_slash(line: str) -> tuple[Action, str]:
    """Return the action a line such as ``/think off`` asks for, and its argument.

    Raises: UsageError naming the nearest command.
    """
    line = line.strip()
    for alias, meaning in _OLLAMA.items():
        if line.lower() == alias or line.lower().startswith(alias + " "):
            line = meaning + line[len(alias) :]
            break
    name, _, rest = line.partition(" ")
    for each in ACTIONS:
        if name.lower() in each.slash:
            return each, rest.strip()
    names = [slash for each in ACTIONS for slash in each.slash]
    near = get_close_matches(name.lower(), names, n=1)
    raise UsageError(
        f"there is no command {name}",
        why=f"did you mean {near[0]}?" if near else "/help lists the commands",
        try_="two slashes send a text that begins with one",
    )


def completions(start: str) -> list[Action]:
    """Return the actions with a slash command that begins with ``start``."""
    return [a for a in ACTIONS if any(s.startswith(start.lower()) for s in a.slash)]


def help_lines() -> list[tuple[str, str]]:
    """Return every action as names and a sentence, in the order of the registry."""
    out = []
    for each in ACTIONS:
        names = [*each.slash[:1], *each.keys]
        shown = ", ".join(names) + (f" {each.argument}" if each.argument and each.slash else "")
        out.append((shown, each.help))
    return out
