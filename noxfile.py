"""Checks of the project, run in the environment nox itself runs in.

``check`` is what the README's test command runs; ``long`` is what does not fit it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.options.sessions = ["check"]
nox.options.default_venv_backend = "none"

TARGETS = (
    "x86_64-linux-gnu.2.28",
    "aarch64-linux-gnu.2.28",
    "x86_64-windows-gnu",
    "aarch64-macos.11.0",
)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, types, import contracts and size limits; any finding fails."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("python", "-m", "build_tools.sizes")


@nox.session
def tests(session: nox.Session) -> None:
    """Every test that takes seconds; warnings are errors."""
    session.run("pytest", "-m", "not long", *session.posargs)


@nox.session
def check(session: nox.Session) -> None:
    """Lint, then tests."""
    lint(session)
    tests(session)


@nox.session
def wheels(session: nox.Session) -> None:
    """Build the wheels of every system from this one into dist/."""
    shutil.rmtree("dist", ignore_errors=True)
    for target in TARGETS:
        session.run(
            "python", "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", ".",
            env={"LOCALGLM_TARGET": target},
        )  # fmt: skip
    made = sorted(p.name for p in Path("dist").glob("*.whl"))
    if len(made) != len(TARGETS):
        session.error(f"{len(TARGETS)} wheels wanted, found {made}")


@nox.session
def windows(session: nox.Session) -> None:
    """Install the Windows wheel into a Windows Python under wine and compare it with Linux."""
    if not (shutil.which("wine64") or Path("/usr/lib/wine/wine64").exists()):
        session.warn("LEFT OUT: wine is not installed, so nothing was shown for Windows")
        session.warn("try: apt-get install --no-install-recommends wine wine64")
        return
    session.run("sh", "scripts/wine_check.sh", external=True)


@nox.session
def long(session: nox.Session) -> None:
    """What needs minutes: fuzzing, full-width contract runs, soak tests, wheels, Windows."""
    session.run("pytest", "-m", "long", "--timeout", "1800", *session.posargs)
    wheels(session)
    windows(session)
