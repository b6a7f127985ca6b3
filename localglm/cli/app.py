"""The ``localglm`` command: finds the commands, turns failures into lines."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

import localglm
from localglm.cli.screen import is_closed_pipe, safe, utf8
from localglm.errors import LocalGlmError, MemoryShortError, UsageError

_COMMANDS = ("ask", "backends", "bench", "chat", "config", "demo", "inspect", "trace")
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

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_extra: Any
    ) -> NoReturn:
        """Run the program and end the process; never with a traceback."""
        for stream in (sys.stdout, sys.stderr):
            utf8(stream)
        given = list(sys.argv[1:] if args is None else args)
        sys.exit(_exit_code(lambda: self._obey(given, prog_name or "localglm")))

    def _obey(self, arguments: list[str], name: str) -> None:
        if sys.stdout is None:
            raise _no_output("it is closed")
        with self.make_context(name, arguments) as context:
            self.invoke(context)
        sys.stdout.flush()


def _exit_code(program: Callable[[], None]) -> int:
    """Run ``program``, print what went wrong and return the exit code."""
    code = 0
    try:
        program()
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        code = _report(_bad_command(error))
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except LocalGlmError as error:
        code = _report(error)
    except OSError as error:
        code = _system_error(error)
    except MemoryError:
        code = _report(_no_memory())
    except Exception as error:  # noqa: BLE001 - the edge of the process
        code = _report(_unexpected(error))
    return code


def _bad_command(error: click.ClickException) -> UsageError:
    """Say what the command line lacks in the words of every other mistake."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    where = context.command_path if context else "localglm"
    why = context.get_usage().replace("Usage: ", "the form is ") if context else ""
    return UsageError(
        error.format_message().rstrip("."), why=" ".join(why.split()), try_=f"{where} --help"
    )


def _no_output(why: str) -> LocalGlmError:
    return LocalGlmError(
        "standard output could not be written",
        why=why,
        try_="free some space, or write somewhere else",
    )


def _system_error(error: OSError) -> int:
    """Tell a stream that cannot be written, which has no name, from any other refusal."""
    if error.filename is not None:
        return _report(
            LocalGlmError(
                f"cannot use {os.fsdecode(error.filename)}",
                why=error.strerror or str(error),
                try_="check that it exists and that you may use it",
            )
        )
    _discard_output()
    return 0 if is_closed_pipe(error) else _report(_no_output(error.strerror or str(error)))


def _no_memory() -> LocalGlmError:
    return MemoryShortError(
        "this program ran out of memory", why="the system refused more", try_="close other programs"
    )


def _unexpected(error: Exception) -> LocalGlmError:
    """Keep the traceback in the log folder and say where."""
    import traceback  # noqa: PLC0415 - only after a fault of ours

    from localglm import paths  # noqa: PLC0415

    file = paths.log_folder() / "crash.log"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        kept = f"report it with {file}"
    except OSError:
        kept = "report it with the command you ran"
    return LocalGlmError(
        "localglm made a mistake", why=f"{type(error).__name__}: {error}", try_=kept
    )


def _report(error: LocalGlmError) -> int:
    for line in error.lines():
        with contextlib.suppress(OSError):
            click.echo(safe(line).replace("\n", " "), err=True)
    return error.exit_code


def _discard_output() -> None:
    """Let the interpreter flush into nothing at exit instead of failing again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "--plain", is_flag=True, help="Chat in plain lines, for any terminal, pipe or reader."
)
@click.version_option(localglm.__version__, prog_name="localglm")
@click.pass_context
def main(context: click.Context, plain: bool) -> None:
    """Run GLM-5.3-Flash on this computer.

    Without a command: the full-screen chat, with the model and the chat of last time.
    """
    if context.invoked_subcommand is None:
        from localglm.cli.full_screen import begin  # noqa: PLC0415 - keeps --help light

        begin(plain=plain)
