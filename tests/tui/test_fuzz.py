"""Random keys, sizes and streams cut at every point: no exception, no lost text."""

from __future__ import annotations

import random

import pytest
from at_screen import User, at_screen
from fake_engine import Crash, FakeEngine, done, say, think

from localglm.engine import protocol as p

KEYS = (
    "a", "space", "enter", "escape", "up", "down", "left", "right", "tab", "shift+tab", "ctrl+j",
    "ctrl+t", "f1", "f3", "f4", "f5", "f6", "f7", "ctrl+n", "ctrl+r", "ctrl+p", "delete", "f2",
    "backspace", "slash", "e", "r", "y", "k", "home", "end", "pageup", "pagedown", "ctrl+a",
    "ctrl+z", "ctrl+w", "backslash", "question_mark",
)  # fmt: skip
WORDS = (
    "plain ",
    "**bold** ",
    "`code",
    "```\n",
    "\n\n",
    "- item\n",
    "模型",
    "\x1b[2J",
    "# h\n",
    "",
)


def random_script(chance: random.Random) -> list[object]:
    out: list[object] = []
    for _ in range(chance.randrange(12)):
        text = "".join(chance.choices(WORDS, k=chance.randrange(6)))
        out.append(chance.choice([
            think(text), say(text), say(text), p.Notice(request=1, text=text),
            p.Prefill(request=1, done=3, total=chance.choice([0, 3, 9]), cached=1),
            p.ToolCall(request=1, name=text, arguments={}),
        ]))  # fmt: skip
    ends = [done(), done("length"), done("cancelled"), Crash(), say("end")]
    return [*out, chance.choice(ends)]


def play(seed: int, steps: int) -> None:
    chance = random.Random(seed)

    @at_screen(lambda: FakeEngine(*[random_script(chance) for _ in range(40)]), size=(80, 24))
    async def user_presses(user: User) -> None:
        for _ in range(steps):
            if chance.random() < 0.05:
                await user.pilot.resize_terminal(chance.randrange(1, 200), chance.randrange(1, 60))
            else:
                await user.presses(chance.choice(KEYS))
            assert user.app.fault is None

    user_presses()


@pytest.mark.parametrize("seed", range(3))
def test_random_keys_and_sizes_raise_nothing(seed: int) -> None:
    play(seed, 60)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_random_keys_and_sizes_raise_nothing(seed: int) -> None:
    play(seed, 400)


STREAM = [
    p.Prefill(request=1, done=1, total=2, cached=0), think("one "), think("two"), say("three "),
    p.Notice(request=1, text="note"), say("four"), done(),
]  # fmt: skip


@pytest.mark.parametrize("cut", range(len(STREAM)))
@pytest.mark.parametrize("end", [Crash(), done("cancelled")], ids=["crash", "cancel"])
def test_a_stream_cut_anywhere_keeps_what_came(cut: int, end: object) -> None:
    @at_screen(lambda: FakeEngine([*STREAM[:cut], end]))
    async def cut_there(user: User) -> None:
        await user.asks("hi")
        deltas = [event for event in STREAM[:cut] if isinstance(event, p.Delta)]
        wanted = {kind: "".join(d.text for d in deltas if d.kind == kind)
                  for kind in ("thinking", "answer")}  # fmt: skip
        answers = [turn for turn in user.chat.turns.path() if turn.role == "assistant"]
        assert "".join(turn.text for turn in answers) == wanted["answer"]
        assert "".join(turn.thinking for turn in answers) == wanted["thinking"]
        if deltas:
            assert answers[0].state == ("broken" if isinstance(end, Crash) else "stopped")

    cut_there()
