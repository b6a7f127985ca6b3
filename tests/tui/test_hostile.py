"""Hostile text is shown, never obeyed; and nothing of it is lost."""

from __future__ import annotations

import re

import pytest
from at_screen import User, at_screen
from fake_engine import FakeEngine, say, think
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from localglm.tui.flow import Flow
from localglm.tui.markdown import inline
from localglm.tui.safe_text import one_line, shown, typed
from localglm.tui.wrapping import text_of, wrapped

STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
HOSTILE = {
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "c1": "\x9b31mred\x9d0;x\x9c",
    "home": "a\rb\x08\x08c\x0b\x0c",
    "markup": "[bold red]x[/] [@click=app.exit]y[/] [link=file:///]z[/link] [/nope]",
    "bidi": "abc\u202edef\u2066x",
    "zero width": "a\u200bb\ufeffc\u2060d",
    "piled": "Z" + "\u0301" * 500,
    "rtl": "שלום עולם مرحبا",
    "wide": "模型" * 300,
    "fence": "```py\nx = '`'\n~~~\nnever closed",
    "emphasis": "**a *b `c **" * 50,
    "surrogate": "a\ud800b",
    "separators": "a\u2028b\u2029c",
    "nothing": "\n\n\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("treat", [shown, typed, one_line])
def test_no_function_lets_a_steering_character_through(text: str, treat: object) -> None:
    assert not STEERING.search(treat(text).replace("\n", ""))


def test_the_check_itself_sees_steering_characters() -> None:
    for name in ("colour", "title", "c1", "home", "bidi", "surrogate"):
        assert STEERING.search(HOSTILE[name])


@given(st.text())
def test_only_what_steers_is_replaced(text: str) -> None:
    out = shown(text)
    assert not STEERING.search(out.replace("\n", ""))
    plain = "".join(c for c in text if c.isalnum() and ord(c) < 0x300)
    assert plain in "".join(c for c in out if c.isalnum() and ord(c) < 0x300)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_laid_out_lines_hold_no_sequence_and_fit(text: str) -> None:
    for line in Flow(text).lines(60):
        assert cell_len(text_of(line).rstrip()) <= 60
        assert not STEERING.search(text_of(line))


def screens_of(text: str) -> FakeEngine:
    return FakeEngine([think(text), say(text), say("\nTHE END")])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_shown_and_the_chat_goes_on(name: str) -> None:
    @at_screen(lambda: screens_of(HOSTILE[name]), size=(80, 24))
    async def play(user: User) -> None:
        await user.asks(typed(HOSTILE[name])[:200].strip() or "x")
        await user.sees("THE END")
        await user.presses("space")
        for strip in user.app.screen._compositor.render_strips():
            for segment in strip:
                assert segment.control is None
                assert not STEERING.search(segment.text)
        assert user.chat.turns.last.text == HOSTILE[name] + "\nTHE END"
        assert user.app.is_running

    play()


@at_screen(lambda: FakeEngine([say("[bold]not bold[/bold]")]), size=(80, 24))
async def test_markup_of_the_model_is_plain_text(user: User) -> None:
    await user.asks("[red]mine[/red]")
    await user.sees("[bold]not bold[/bold]")
    await user.sees("[red]mine[/red]")
    await user.presses("ctrl+r")
    await user.until(lambda: user.app.screen is not user.chat)
    await user.sees("[red]mine[/red]")


def test_a_line_of_a_megabyte_is_laid_out_piece_by_piece() -> None:
    flow = Flow()
    for _ in range(100):
        flow.append("word and then " * 750)
        flow.lines(100)
    assert len("".join(text_of(line) for line in flow.lines(100))) == 1_050_000
    flow = Flow("x" * 1_000_000)
    assert "".join(text_of(line) for line in flow.lines(100)) == "x" * 1_000_000


@settings(max_examples=150)
@given(
    st.lists(st.text(alphabet=" ab*`#->\n\t模e\u0301", max_size=40), max_size=20),
    st.integers(8, 60),
)
def test_text_that_comes_in_pieces_looks_like_text_that_came_at_once(
    pieces: list[str], width: int
) -> None:
    growing = Flow()
    for piece in pieces:
        growing.append(piece)
        growing.lines(width)
    assert growing.lines(width) == Flow("".join(pieces)).lines(width)
    assert growing.text == "".join(pieces)


@given(st.text(alphabet=" ab模🙂e\u0301\u200d-", max_size=300), st.integers(2, 40))
def test_wrapping_keeps_every_character_and_the_width(text: str, width: int) -> None:
    lines = wrapped([(text[:7], "code"), (text[7:], "text")], width)
    assert "".join(text_of(line) for line in lines) == text


@given(st.text(alphabet="ab *`_", max_size=80))
def test_emphasis_only_takes_its_own_marks_away(text: str) -> None:
    kept = "".join(part for part, _ in inline(text))
    for char in "ab _":
        assert kept.count(char) == text.count(char)
