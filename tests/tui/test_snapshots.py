"""What the screens look like at three sizes, kept as text beside this file.

Run this file as a program to write them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from at_screen import User, at_screen
from fake_engine import FakeEngine, Gate, say, think

from localglm.engine import protocol as p

FOLDER = Path(__file__).parent / "screens"
SIZES = ((80, 24), (120, 40), (200, 60))
ANSWER = (
    "# Title\n\nA **bold** word, `code`, *emphasis* and [brackets].\n\n- one\n- two\n\n```py\n"
    "print('x')\n```\n> quoted\n\n模型 and a long line that has to be wrapped " + "again and " * 12
)


def answered() -> FakeEngine:
    return FakeEngine([think("some thought"), say(ANSWER)])


async def chat(user: User) -> None:
    user.chat.turns.system = ""
    await user.asks("What is it?")
    user.chat.turns.last.thinking_s = 12.0
    user.chat.show_tree()
    await user.sees("Enter sends")


async def reading(user: User) -> None:
    await user.sends("What is it?")
    await user.sees("reading")


async def chats(user: User) -> None:
    await user.asks("What is it?")
    await user.presses("ctrl+r")
    await user.sees("What is it?  just now")


async def first(user: User) -> None:
    await user.sees("8 GiB")


def at_reading() -> FakeEngine:
    prefill = p.Prefill(
        request=1, done=600, total=1000, cached=250, tokens_per_s=45.0, seconds_left=9.0
    )
    return FakeEngine([prefill, Gate(), say("x")])


SCENES = {
    "chat": (answered, chat, {}),
    "reading": (at_reading, reading, {}),
    "chats": (answered, chats, {}),
    "first": (FakeEngine, first, {"model": None}),
}


def picture(scene: str, size: tuple[int, int]) -> str:
    engine, act, changes = SCENES[scene]
    out: list[str] = []

    @at_screen(engine, size=size, **changes)
    async def play(user: User) -> None:
        if scene != "first":
            await user.sees("4,096 left")
            await user.sees("Test card" if size[0] > 80 else "cpu")
        await act(user)
        out.append("\n".join(line.rstrip() for line in user.screen.splitlines()) + "\n")

    play()
    return out[0]


def file_of(scene: str, size: tuple[int, int]) -> Path:
    return FOLDER / f"{scene}-{size[0]}x{size[1]}.txt"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES)
def test_a_screen_looks_as_it_did(scene: str, size: tuple[int, int]) -> None:
    assert picture(scene, size) == file_of(scene, size).read_text(encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in SCENES:
        for wanted in SIZES:
            file_of(each, wanted).write_text(picture(each, wanted), encoding="utf-8")
