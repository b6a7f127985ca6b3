"""What a line-mode command writes: answers on standard output, everything else on standard error.

Model text is untrusted: control characters never reach the terminal, while a pipe or a file gets
the answer as it is. A reader that goes away ends the output without noise.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shutil
import sys
import time
from typing import TYPE_CHECKING, Self, TextIO

from localglm.engine.plan_text import everything_fits, is_plan
from localglm.errors import LocalGlmError
from localglm.settings.load import environment
from localglm.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from localglm.engine.protocol import Done, Loading, Prefill

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

_STATUS_S = 0.1


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


def is_same_file(one: TextIO, other: TextIO) -> bool:
    """Whether two streams end at the same place: a terminal, or a pipe both were sent to."""
    try:
        first, second = os.fstat(one.fileno()), os.fstat(other.fileno())
    except (OSError, ValueError):
        return False
    if first.st_ino == 0:
        # Windows numbers neither pipes nor consoles, and a program has one console at most.
        return one.isatty() and other.isatty()
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def is_dumb(variables: Mapping[str, str]) -> bool:
    """Whether the terminal says that it cannot move its cursor."""
    return variables.get("TERM") == "dumb"


class ReaderGoneError(Exception):
    """Whoever read standard output has closed it."""


class Screen:
    """The two streams of one command.

    Running text, an answer on standard output or thinking on standard error, leaves its line open;
    whatever comes next on that line begins with a line feed.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._out = utf8(sys.stdout)
        self._err = utf8(sys.stderr)
        self._is_quiet = is_quiet
        self._status = ""
        self._status_time = 0.0
        self._labels = {"answer": "", "thinking": ""}
        self._is_answer_open = False
        self._is_aside_open = False
        self.err_is_terminal = self._err.isatty()
        self._shows_status = self.err_is_terminal and not is_quiet and not is_dumb(environment())
        self._is_shared = is_same_file(self._out, self._err)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave_line()

    def answer(self, text: str) -> None:
        """Write part of an answer.

        Raises: ReaderGoneError when nobody reads it any more.
        """
        text = safe(text) if self._out.isatty() else text
        if not text:
            return
        self._end_aside()
        self._write_label("answer")
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as error:
            if is_closed_pipe(error):
                raise ReaderGoneError from error
            raise LocalGlmError(
                "the answer could not be written to standard output",
                why=error.strerror or str(error),
                try_="free some space, or write somewhere else",
            ) from error
        self._is_answer_open = not text.endswith("\n")

    def end_text(self) -> None:
        """End the line of an answer or of thinking that stands open.

        Raises: ReaderGoneError when nobody reads the answer any more.
        """
        self.label()
        self._end_aside()
        if self._is_answer_open:
            self.answer("\n")

    def json(self, text: str) -> None:
        """Write JSON as it stands; strings in it are escaped already.

        Raises: ReaderGoneError when nobody reads it any more.
        """
        self.answer(text + "\n")

    def label(self, *, answer: str = "", thinking: str = "") -> None:
        """Keep words to write before the next answer, and before thinking that shares its place."""
        self._labels = {"answer": answer, "thinking": thinking if self._is_shared else ""}

    def ask(self, text: str) -> None:
        """Ask for a line; whoever types ends it."""
        self.clear_status()
        self._write_error(text)

    def aside(self, text: str) -> None:
        """Write running text, such as thinking, to standard error."""
        text = safe(text)
        if text:
            self._write_label("thinking")
            self._write_error(text)
            self._is_aside_open = not text.endswith("\n")

    def line(self, text: str) -> None:
        """Write a line to standard error, unless the command is quiet."""
        self._leave_line()
        if not self._is_quiet:
            self._write_error(safe(text) + "\n")

    def status(self, text: str) -> None:
        """Show what goes on, in place, on a terminal; figures change at most ten times a second."""
        now = time.monotonic()
        is_news = text.partition(":")[0] != self._status.partition(":")[0]
        is_due = is_news or (text != self._status and now >= self._status_time + _STATUS_S)
        if not (self._shows_status and is_due):
            return
        self._leave_line()
        width = shutil.get_terminal_size().columns - 1
        self._write_error(f"\r\x1b[K{safe(text)[:width]}")
        self._status, self._status_time = text, now

    def clear_status(self) -> None:
        """Take the status line away."""
        if self._status:
            self._write_error("\r\x1b[K")
            self._status, self._status_time = "", 0.0

    def _leave_line(self) -> None:
        """Begin a fresh line on standard error, also where an answer shares its line."""
        self._end_aside()
        if self._is_answer_open and self._is_shared:
            self._write_error("\n")
            self._is_answer_open = False

    def _end_aside(self) -> None:
        self.clear_status()
        if self._is_aside_open:
            self._write_error("\n")
            self._is_aside_open = False

    def _write_label(self, kind: str) -> None:
        self.clear_status()
        label, self._labels[kind] = self._labels[kind], ""
        if label:
            self._write_error(label)

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


def tell_loading(event: Loading, screen: Screen, *, is_brief: bool = False) -> None:
    """Show how far opening has come; the memory plan stays, unless in brief when all fits."""
    if is_plan(event.stage) and not (is_brief and everything_fits(event.stage)):
        screen.line(event.stage)
    else:
        screen.status(loading_text(event))


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
