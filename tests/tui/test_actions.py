"""The registry of actions: names, keys, and what slash commands mean."""

from __future__ import annotations

from collections import Counter

import pytest

from localglm.errors import UsageError
from localglm.tui.actions import ACTIONS, completions, parse_slash
from localglm.tui.app import GlmApp
from localglm.tui.chat_screen import ChatScreen
from localglm.tui.chats_screen import ChatsScreen
from localglm.tui.commands import Commands


def test_ids_and_slash_names_belong_to_one_action_each() -> None:
    assert max(Counter(each.id for each in ACTIONS).values()) == 1
    assert max(Counter(slash for each in ACTIONS for slash in each.slash).values()) == 1


@pytest.mark.parametrize("places", [("everywhere", "chat"), ("transcript",), ("chats",)])
def test_a_key_means_one_thing_in_one_place(places: tuple[str, ...]) -> None:
    keys = Counter(key for each in ACTIONS if each.place in places for key in each.keys)
    assert [key for key, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_a_sentence_and_somebody_who_does_it(action: object) -> None:
    assert action.help.endswith(".")
    homes = (ChatScreen, Commands, ChatsScreen, GlmApp)
    in_prompt = action.handler == "newline"
    assert in_prompt or any(hasattr(home, f"do_{action.handler}") for home in homes)
    assert not any(hasattr(home, f"do_{action.handler}x") for home in homes)


@pytest.mark.parametrize(
    ("line", "name", "argument"),
    [
        ("/set think", "think", "high"),
        ("/set nothink", "think", "off"),
        ("/SET NOTHINK", "think", "off"),
        ("/bye", "quit", ""),
        ("/?", "help", ""),
        ("/think low", "think", "low"),
        ("/file a b.txt", "file", "a b.txt"),
        ("/set system be brief", "system", "be brief"),
    ],
)
def test_commands_of_other_programs_work(line: str, name: str, argument: str) -> None:
    action, rest = parse_slash(line)
    assert (action.id, rest) == (name, argument)


def test_a_wrong_command_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        parse_slash("/regenn")
    assert "/regen" in caught.value.why


def test_the_beginning_of_a_command_is_completed() -> None:
    assert [each.id for each in completions("/mem")] == ["memory"]
    assert completions("/xyz") == []
