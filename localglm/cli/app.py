"""The ``localglm`` command: finds the commands, turns failures into lines and exit codes."""

from __future__ import annotations

import importlib
from typing import Any

import click

import localglm
from localglm.errors import LocalGlmError

_COMMANDS = ("ask", "bench", "chat", "config", "inspect", "trace")
_INTERRUPTED = 130


class Program(click.Group):
    """Loads a command's module when it is asked for, and prints errors of ours as lines."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of ``--help``."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        if cmd_name not in _COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"localglm.cli.{cmd_name}").command
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of ours become up to three lines and their exit code."""
        try:
            return super().invoke(ctx)
        except LocalGlmError as error:
            for line in error.lines():
                click.echo(line, err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(localglm.__version__, prog_name="localglm")
def main() -> None:
    """Run GLM-5.3-Flash on this computer."""
