"""The Windows Python that scripts/wine_check.sh set up, and how to run it under wine.

The files here are named check_*.py: they need that set-up and run only when they are named.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

import pytest

LIMIT_S = 1500


@dataclass(frozen=True, slots=True)
class Windows:
    """A Windows Python with the wheel, below ``home``; commands see ``/`` as drive Z."""

    home: Path
    wine: str

    def python(
        self, *arguments: str, text: bytes = b"", variables: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the Windows Python with pipes as its standard streams."""
        environment = {
            **os.environ,  # noqa: TID251 - handed on, not read
            "WINEPREFIX": str(self.home / "prefix"),
            "WINEDEBUG": "-all",
            # The debugger would keep the pipes of a process that died.
            "WINEDLLOVERRIDES": "mscoree,mshtml,winedbg.exe=d",
            "LC_ALL": "C.UTF-8",
            **(variables or {}),
        }
        return subprocess.run(
            [self.wine, str(self.home / "python" / "python.exe"), *arguments],
            input=text,
            capture_output=True,
            check=False,
            env=environment,
            cwd=self.home / "tree",
            timeout=LIMIT_S,
        )

    def run(
        self, *arguments: str, code: int = 0, text: bytes = b"",
        variables: dict[str, str] | None = None,
    ) -> tuple[str, str]:  # fmt: skip
        """Run localglm and return what it wrote to its two streams."""
        done = self.python("-m", "localglm", *arguments, text=text, variables=variables)
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        assert done.returncode == code, err
        return out, err


def seen_by_windows(path: Path) -> str:
    """Return ``path`` as Windows programs name it."""
    return str(PureWindowsPath("Z:", *path.resolve().parts))


def run_here(*arguments: str) -> tuple[str, str]:
    """Run localglm of this system and return what it wrote to its two streams."""
    done = subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
    )
    return done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--windows-home", type=Path, help="folder scripts/wine_check.sh set up")
    parser.addoption("--wine", help="program that runs Windows programs")


@pytest.fixture(scope="session")
def windows(pytestconfig: pytest.Config) -> Windows:
    home, wine = pytestconfig.getoption("--windows-home"), pytestconfig.getoption("--wine")
    assert home, "run: sh scripts/wine_check.sh"
    assert wine, "run: sh scripts/wine_check.sh"
    return Windows(home.resolve(), wine)
