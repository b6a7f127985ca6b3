"""Every failure a user can meet, with its exit code.

Tree::

    LocalGlmError                1   anything not named below
    ├── UsageError               2   a command line that cannot be obeyed
    ├── ModelFileError           3   a GGUF file or set that cannot be used
    ├── SettingsError            4   a settings file, variable or flag with a bad value
    ├── DeviceError              5   a backend or device that cannot be used
    ├── MemoryShortError         6   something that does not fit, with the numbers
    ├── WorkerError              7   the engine process died, hung or could not start
    ├── RequestError             8   one request failed; the next one works
    │   └── NumericFaultError    8   a value that is not finite where one must be
    └── ShapeError               1   arrays that do not belong together (a programming mistake)

Each error says what failed (with the values), why, and one thing to try.
"""

from __future__ import annotations

from typing import ClassVar


class LocalGlmError(Exception):
    """Base of the tree: ``what`` failed, ``why``, and what to ``try_`` next."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, why: str = "", try_: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.try_ = try_

    def __reduce__(self) -> tuple[object, ...]:
        """Keep the three parts when the error crosses a process boundary."""
        return (_rebuild, (type(self), self.what, self.why, self.try_))

    def lines(self) -> list[str]:
        """Return the up to three lines the command line prints."""
        out = [f"error: {self.what}"]
        if self.why:
            out.append(f"  why: {self.why}")
        if self.try_:
            out.append(f"  try: {self.try_}")
        return out


def _rebuild(kind: type[LocalGlmError], what: str, why: str, try_: str) -> LocalGlmError:
    return kind(what, why=why, try_=try_)


class UsageError(LocalGlmError):
    """A command line that cannot be obeyed."""

    exit_code = 2


class ModelFileError(LocalGlmError):
    """A GGUF file or split set that cannot be used."""

    exit_code = 3


class SettingsError(LocalGlmError):
    """A settings file, environment variable or flag with a bad name or value."""

    exit_code = 4


class DeviceError(LocalGlmError):
    """A backend or device that cannot be used here."""

    exit_code = 5


class MemoryShortError(LocalGlmError):
    """Something that does not fit, with the numbers."""

    exit_code = 6


class WorkerError(LocalGlmError):
    """The engine process died, hung or could not start."""

    exit_code = 7


class RequestError(LocalGlmError):
    """One request failed; the engine goes on and the next request works."""

    exit_code = 8


class NumericFaultError(RequestError):
    """A value that is not finite where one must be."""


class ShapeError(LocalGlmError):
    """Arrays that do not belong together; a programming mistake, never user input."""
