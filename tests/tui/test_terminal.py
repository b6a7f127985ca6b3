"""The terminal is given back on every way out."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("pseudo terminals are of POSIX", allow_module_level=True)
import pty
import termios

from localglm.settings.load import environment

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM = f"""
import sys
sys.path[:0] = [{str(ROOT)!r}, {str(HERE)!r}]
from fake_engine import program
from localglm.tui import start, app as module
def broken(*_): raise KeyError("a mistake of ours")
module.GlmApp.do_model = broken
fake = program()
start.GlmApp = lambda _begin: fake
from localglm.cli import app, full_screen
full_screen.is_full_screen = lambda **_: True
app.main([])
"""


class Terminal:
    """A program at a pseudo terminal."""

    def __init__(self) -> None:
        self.outside, inside = pty.openpty()
        self.before = termios.tcgetattr(inside)
        self.inside = inside
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=inside, stdout=inside, stderr=inside,
            env={**environment(), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"},
        )  # fmt: skip
        self.said = ""

    def sees(self, text: str, limit_s: float = 30.0) -> None:
        end = time.monotonic() + limit_s
        while text not in self.said:
            assert time.monotonic() < end, self.said[-2000:]
            if select.select([self.outside], [], [], 0.2)[0]:
                self.said += os.read(self.outside, 65536).decode(errors="replace")

    def types(self, text: str) -> None:
        os.write(self.outside, text.encode())

    def ends(self) -> int:
        self.sees("\x1b[?1049l")
        code = self.process.wait(30)
        while select.select([self.outside], [], [], 0.2)[0]:
            self.said += os.read(self.outside, 65536).decode(errors="replace")
        assert termios.tcgetattr(self.inside) == self.before
        os.close(self.inside)
        os.close(self.outside)
        return code


@pytest.fixture
def terminal() -> Terminal:
    out = Terminal()
    out.sees("Enter sends")
    return out


def test_quitting_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.types("\x11")
    assert terminal.ends() == 0


def test_ctrl_c_twice_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.types("\x03")
    terminal.sees("leaves")
    terminal.types("\x03")
    assert terminal.ends() == 0


def test_a_termination_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ends() == 0


def test_a_mistake_of_ours_gives_the_terminal_back_and_is_three_lines(terminal: Terminal) -> None:
    terminal.types("/model x\r")
    assert terminal.ends() == 1
    after = terminal.said.rpartition("\x1b[?1049l")[2]
    assert "error: localglm made a mistake" in after
    assert "Traceback" not in after
