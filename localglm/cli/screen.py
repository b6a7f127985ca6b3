"""What a line-mode command writes: answers on standard output, everything else on standard error.

Model text is untrusted: control characters never reach the terminal. A reader that goes away ends
the output without noise.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

from localglm.errors import LocalGlmError
from localglm.units import duration_text

if TYPE_CHECKING:
    from localglm.engine.protocol import Done, Loading, Prefill

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """Return text without characters that steer a terminal; tabs and line feeds stay."""
    return _CONTROL.sub("", text)


def utf8(stream: TextIO | None) -> TextIO:
    """Return a standard stream speaking UTF-8 with bare line feeds, the same bytes on every system.

    A closed one is empty.
    """
    if stream is None:
        return io.StringIO()
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    return stream


def is_closed_pipe(error: OSError) -> bool:
    """Whether a write failed because nobody reads any more."""
    # Windows reports a closed pipe as an invalid argument.
    return error.errno in {errno.EPIPE, errno.EINVAL}


class ReaderGoneError(Exception):
    """Whoever read standard output has closed it."""


class Screen:
    """The two streams of one command."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._out = utf8(sys.stdout)
        self._err = utf8(sys.stderr)
        self._is_quiet = is_quiet
        self._has_status = False
        self.err_is_terminal = self._err.isatty()
        self.out_is_terminal = self._out.isatty()

    def answer(self, text: str) -> None:
        """Write part of an answer.

        Raises: ReaderGoneError when nobody reads it any more.
        """
        self.clear_status()
        try:
            self._out.write(safe(text))
            self._out.flush()
        except OSError as error:
            if is_closed_pipe(error):
                raise ReaderGoneError from error
            raise LocalGlmError(
                "the answer could not be written to standard output",
                why=error.strerror or str(error),
                try_="free some space, or write somewhere else",
            ) from error

    def json(self, text: str) -> None:
        """Write JSON as it stands; strings in it are escaped already.

        Raises: ReaderGoneError when nobody reads it any more.
        """
        self.answer(text + "\n")

    def aside(self, text: str) -> None:
        """Write running text, such as thinking, to standard error."""
        self.clear_status()
        self._write_error(safe(text))

    def line(self, text: str) -> None:
        """Write a line to standard error, unless the command is quiet."""
        self.clear_status()
        if not self._is_quiet:
            self._write_error(safe(text) + "\n")

    def status(self, text: str) -> None:
        """Show what goes on, in place; only on a terminal."""
        if self.err_is_terminal and not self._is_quiet:
            self._write_error(f"\r\x1b[K{safe(text)[:78]}")
            self._has_status = True

    def clear_status(self) -> None:
        """Take the status line away."""
        if self._has_status:
            self._write_error("\r\x1b[K")
            self._has_status = False

    def _write_error(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._err.write(text)
            self._err.flush()

    def abandon_output(self) -> None:
        """Point standard output at nothing, so that closing it at exit does not fail."""
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)


def loading_text(event: Loading) -> str:
    """Say how far opening the model has come."""
    if event.total > 1:
        return f"{event.stage}: {100 * event.done // event.total} %"
    return event.stage


def prefill_text(event: Prefill) -> str:
    """Say how far reading the prompt has come."""
    kept = f", {event.cached} of them kept" if event.cached else ""
    text = f"reading the prompt: {event.done} of {event.total} tokens{kept}"
    if event.tokens_per_s is not None and event.seconds_left is not None:
        left = duration_text(event.seconds_left)
        text += f", {event.tokens_per_s:.0f} tok/s, {left} left"
    return text


def closing_text(done: Done) -> str:
    """Sum a request up; a rate is named only when tokens stand behind it."""
    usage, timings = done.usage, done.timings
    kept = f" ({usage.cached} kept)" if usage.cached else ""
    parts = [f"prompt {usage.prompt} tokens{kept}{_at(timings.prefill_tokens_per_s)}"]
    thinking = f" ({usage.thinking} thinking)" if usage.thinking else ""
    parts.append(f"answer {usage.generated} tokens{thinking}{_at(timings.decode_tokens_per_s)}")
    parts.append({"end": "complete", "length": "cut at the limit"}.get(done.reason, done.reason))
    return "[" + "; ".join([*parts, f"seed {done.seed}"]) + "]"


def _at(rate: float | None) -> str:
    return "" if rate is None else f" at {rate:.1f} tok/s"
