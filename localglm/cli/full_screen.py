"""``localglm`` without a command: the full screen, or plain lines where there is no terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from localglm.cli.screen import is_dumb
from localglm.settings.load import environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def begin(*, plain: bool) -> None:
    """Open the full screen with the model of last time, or the first screen."""
    from localglm.tui.last import NO_FLAGS, read_last  # noqa: PLC0415 - keeps --help light

    if is_full_screen(plain=plain):
        show(None, NO_FLAGS)
        return
    from localglm import paths  # noqa: PLC0415 - the same
    from localglm.cli.chat import talk  # noqa: PLC0415 - the same

    talk(read_last().model or paths.demo_model(), NO_FLAGS)


def show(model: Path | None, flags: Mapping[str, Any]) -> None:
    """Open the full screen."""
    from localglm.tui.start import run  # noqa: PLC0415 - Textual is heavy

    run(model, flags)


def is_full_screen(*, plain: bool) -> bool:
    """Whether both ends are a terminal that can move its cursor."""
    if plain or is_dumb(environment()):
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
