"""The line-mode chat at a terminal: prompts, and Ctrl-C that ends the answer, not the chat."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are POSIX", allow_module_level=True)

import pty

MODEL = Path(__file__).parent.parent / "oracle" / "tiny-q8_0.gguf"
LIMIT_S = 60.0
# Makes the pseudo-terminal the controlling one, so that a typed Ctrl-C becomes a signal.
_AT_TERMINAL = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from localglm.cli.app import main
main()
"""


class Terminal:
    """A chat at a pseudo-terminal."""

    def __init__(self, model: Path, *flags: str) -> None:
        self.fd, child = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _AT_TERMINAL, "chat", str(model), "--plain", *flags],
            stdin=child, stdout=child, stderr=child, start_new_session=True,
        )  # fmt: skip
        os.close(child)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> str:
        """Read until ``text`` appears; return everything up to it and forget it."""
        end = time.monotonic() + LIMIT_S
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-500:]!r}"
            if select.select([self.fd], [], [], 1.0)[0]:
                self.seen += os.read(self.fd, 4096).decode("utf-8", "replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def close(self) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(20)
        os.close(self.fd)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)


def test_ctrl_c_ends_the_answer_and_the_chat_goes_on(endless_model: Path) -> None:
    with Terminal(endless_model, "--temperature", "0", "--think", "off") as terminal:
        terminal.wait_for("you: ")
        terminal.type("Tell me a story\n")
        terminal.wait_for("\r\x1b[Kglm: ")  # the label stands where the status stood
        terminal.type("\x03")
        assert "cancelled" in terminal.wait_for("you: ")
        terminal.type("/retry\n")
        terminal.wait_for("glm: ")
        terminal.type("\x03")
        assert "cancelled" in terminal.wait_for("you: ")
        terminal.type("\x03")
        terminal.wait_for("/exit leaves the chat")
        terminal.wait_for("you: ")
        terminal.type("/exit\n")
        assert terminal.close() == 0


def test_control_d_leaves_the_chat() -> None:
    with Terminal(MODEL, "--max-tokens", "4", "--think", "off") as terminal:
        terminal.wait_for("you: ")
        terminal.type("\x04")
        assert terminal.close() == 0
