"""Whether two streams end at the same place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

import pytest

from localglm.cli import screen


class Unnumbered:
    """A stream the system gives no number, as pipes and consoles of Windows."""

    def __init__(self, *, is_console: bool) -> None:
        self._is_console = is_console

    def fileno(self) -> int:
        return 0

    def isatty(self) -> bool:
        return self._is_console


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[TextIO, TextIO, TextIO]]:
    one = tmp_path / "one"
    with one.open("w") as a, one.open("a") as b, (tmp_path / "two").open("w") as c:
        yield a, b, c


def test_numbers_tell_files_apart(files: tuple[TextIO, TextIO, TextIO]) -> None:
    assert screen.is_same_file(files[0], files[1])
    assert not screen.is_same_file(files[0], files[2])


@pytest.mark.parametrize(
    ("consoles", "same"), [((True, True), True), ((True, False), False), ((False, False), False)]
)
def test_without_numbers_only_consoles_are_the_same(
    monkeypatch: pytest.MonkeyPatch, consoles: tuple[bool, bool], same: bool
) -> None:
    unnumbered = SimpleNamespace(st_dev=0, st_ino=0)
    monkeypatch.setattr(screen, "os", SimpleNamespace(fstat=lambda _fd: unnumbered))
    one, other = (Unnumbered(is_console=console) for console in consoles)
    assert screen.is_same_file(one, other) == same
