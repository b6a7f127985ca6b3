"""``localglm chat``: a conversation, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from localglm.cli.full_screen import is_full_screen, show
from localglm.cli.model_argument import model_argument
from localglm.cli.request_options import Chosen, answer_options, engine_options


@click.command("chat")
@model_argument
@click.option("--plain", is_flag=True, help="Plain lines, for any terminal, pipe or reader.")
@answer_options
@click.option("--show-thinking", is_flag=True, help="Show the thinking.")
@engine_options
def command(model: Path, plain: bool, **flags: Any) -> None:
    """Talk with MODEL.

    MODEL is a GGUF file, any shard of a split file, a folder, or the word demo.
    In plain lines each line is a turn; a line that ends in a backslash goes on. /help lists the
    commands. Ctrl-C ends the answer, not the chat.
    """
    if is_full_screen(plain=plain):
        show(model, flags)
        return
    talk(model, flags)


def talk(model: Path, flags: Mapping[str, Any]) -> None:
    """Open ``model`` and run the line mode until the user leaves."""
    from localglm.cli.conversation import Conversation  # noqa: PLC0415 - keeps --help light
    from localglm.cli.screen import ReaderGoneError, Screen, tell_loading  # noqa: PLC0415
    from localglm.engine.client import Engine  # noqa: PLC0415
    from localglm.engine.protocol import Continuation  # noqa: PLC0415

    chosen = Chosen.of(flags)
    chosen.generate(Continuation())  # a bad value is refused before the model is loaded
    with Screen() as screen, Engine() as engine:
        opened = engine.open_model(
            chosen.open_model(model), lambda event: tell_loading(event, screen)
        )
        for note in opened.notes:
            screen.line(f"note: {note}")
        screen.line(f"{model.name}, context {opened.context} tokens; /help lists the commands")
        try:
            Conversation(engine, chosen, screen).run()
        except ReaderGoneError:
            screen.abandon_output()
