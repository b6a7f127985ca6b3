"""What stands on a line together, and what does not."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localglm.cli.screen import Screen


class Terminal(io.StringIO):
    """Standard error at a terminal."""

    def isatty(self) -> bool:
        return True


class Place:
    """A file that one or both standard streams were sent to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.streams: list[io.TextIOWrapper] = []

    def stream(self) -> io.TextIOWrapper:
        made = self.path.open("a")
        self.streams.append(made)
        return made

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "out")
    yield made
    for stream in made.streams:
        stream.close()


@pytest.fixture
def shared(place: Place, monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A screen whose two streams end at the same place."""
    monkeypatch.setattr(sys, "stdout", place.stream())
    monkeypatch.setattr(sys, "stderr", place.stream())
    return Screen()


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, io.StringIO, Terminal]:
    """A screen with standard error at a terminal and standard output elsewhere."""
    out, err = io.StringIO(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "30")
    return Screen(), out, err


def test_a_line_after_half_an_answer_begins_anew_where_both_share_a_place(
    shared: Screen, place: Place
) -> None:
    shared.answer("half")
    shared.line("error: no")
    shared.end_text()
    assert place.text() == "half\nerror: no\n"


def test_a_line_does_not_touch_an_answer_that_goes_elsewhere(
    apart: tuple[Screen, io.StringIO, Terminal],
) -> None:
    screen, out, err = apart
    screen.answer("half")
    screen.line("note: x")
    screen.answer("way")
    assert (out.getvalue(), err.getvalue()) == ("halfway", "note: x\n")
    screen.end_text()
    screen.end_text()
    assert out.getvalue() == "halfway\n"


def test_thinking_is_ended_before_the_answer_a_line_and_the_end(
    shared: Screen, place: Place
) -> None:
    shared.label(answer="glm: ", thinking="thinking: ")
    shared.aside("hm")
    shared.aside(" so")
    shared.answer("yes")
    shared.answer(" it is\n")
    shared.aside("again")
    shared.line("[figures]")
    with shared:
        shared.aside("cut")
    assert place.text() == "thinking: hm so\nglm: yes it is\nagain\n[figures]\ncut\n"


def test_a_label_waits_for_the_text_and_is_dropped_without_it(
    apart: tuple[Screen, io.StringIO, Terminal],
) -> None:
    screen, _, err = apart
    screen.label(answer="glm: ")
    screen.status("reading")
    assert "glm" not in err.getvalue()
    screen.answer("yes")
    assert err.getvalue().endswith("\r\x1b[Kglm: ")
    screen.end_text()
    screen.label(answer="glm: ")
    screen.end_text()
    screen.answer("no")
    assert err.getvalue().count("glm: ") == 1


def test_a_status_is_drawn_once_cut_to_the_width_and_taken_away(
    apart: tuple[Screen, io.StringIO, Terminal],
) -> None:
    screen, _, err = apart
    for done in range(50):
        screen.status(f"loading weights: {done} %, and much more to say")
        screen.status(f"loading weights: {done} %, and much more to say")
    assert err.getvalue().count("loading") < 10
    screen.status("thinking")
    assert err.getvalue().endswith("\r\x1b[Kthinking")
    with screen:
        pass
    assert err.getvalue().endswith("\r\x1b[K")
    assert max(len(part) for part in err.getvalue().split("\r\x1b[K")) == 29


def test_a_terminal_that_cannot_move_its_cursor_gets_no_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    screen.status("loading")
    screen.line("note: x")
    assert isinstance(sys.stderr, Terminal)
    assert sys.stderr.getvalue() == "note: x\n"
