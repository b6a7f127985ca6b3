"""``localglm config``: show the settings and where each comes from, and change them."""

from __future__ import annotations

import json

import click

from localglm import paths
from localglm.settings.load import environment, load
from localglm.settings.schema import SPECS, shown


@click.group("config")
def command() -> None:
    """Show and change settings."""


@command.command("show")
@click.option("--origin", is_flag=True, help="Add where each value comes from.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(origin: bool, as_json: bool) -> None:
    """Show every setting in force."""
    variables = environment()
    file = paths.settings_file(variables)
    if variables.get("LOCALGLM_CONFIG") and not file.exists():
        click.echo(f"note: LOCALGLM_CONFIG names {file}, which does not exist yet", err=True)
    loaded = load(file, variables)
    rows = [
        (spec, shown(spec, getattr(loaded.settings, spec.field)), loaded.origins[spec.key])
        for spec in SPECS
    ]
    if as_json:
        found = {
            spec.key: {"value": value, "origin": where, "accepts": spec.accepts, "help": spec.help}
            for spec, value, where in rows
        }
        about = {"schema_version": 1, "command": "config show", "file": str(file)}
        click.echo(json.dumps({**about, "settings": found}, indent=1))
        return
    width = max(len(spec.key) for spec in SPECS)
    for spec, value, where in rows:
        tail = f"  {where}" if origin else f"  {spec.help} ({spec.accepts})"
        click.echo(f"{spec.key:<{width}}  {value!s:<8}{tail}")


@command.command("path")
def path() -> None:
    """Print the settings file."""
    click.echo(str(paths.settings_file(environment())))


@command.command("set")
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE in the settings file."""
    from localglm.settings.store import set_value  # noqa: PLC0415 - tomlkit only when writing

    file = paths.settings_file(environment())
    stored = set_value(file, key, value)
    click.echo(f"{key} = {stored} in {file}", err=True)


@command.command("unset")
@click.argument("key")
def unset(key: str) -> None:
    """Remove KEY from the settings file, so that its default counts again."""
    from localglm.settings.store import unset_value  # noqa: PLC0415 - tomlkit only when writing

    file = paths.settings_file(environment())
    found = unset_value(file, key)
    click.echo(f"{key} {'removed from' if found else 'was not set in'} {file}", err=True)
