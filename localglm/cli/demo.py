"""``localglm demo``: a chat with the small model that comes with the program."""

from __future__ import annotations

from typing import Any

import click

from localglm import paths
from localglm.cli.request_options import answer_options, engine_options


@click.command("demo")
@answer_options
@click.option("--show-thinking", is_flag=True, help="Show the thinking.")
@engine_options
def command(**flags: Any) -> None:
    """Talk with the demonstration model; needs no file and no network.

    It is a small model of the same architecture, trained for this program: it shows how everything
    works together, not what GLM-5.3-Flash can say. /help lists the commands.
    """
    from localglm.cli.chat import talk  # noqa: PLC0415 - keeps --help light

    talk(paths.demo_model(), flags)
