"""Build the settings from defaults, the settings file, the environment and flags, in that order.

The only place that reads the environment. Every value keeps where it came from.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localglm.errors import SettingsError
from localglm.settings.schema import COMMAND_LINE, SPECS, Settings, parse_value, spec_of


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force and, per key, the words for where the value came from."""

    settings: Settings
    origins: Mapping[str, str]


def environment() -> dict[str, str]:
    """Return a copy of the process environment."""
    return dict(os.environ)  # noqa: TID251 - this is the one place


def load(
    file: Path, variables: Mapping[str, str], flags: Mapping[str, Any] | None = None
) -> Loaded:
    """Merge defaults < ``file`` < ``variables`` < ``flags``; flags that are None do not count.

    Raises: SettingsError for an unknown key, a bad value or a file that is not TOML; UsageError for
    a flag with a bad value.
    """
    values: dict[str, Any] = {}
    origins = {spec.key: "default" for spec in SPECS}

    def put(key: str, value: Any, origin: str) -> None:
        spec = spec_of(key)
        values[spec.field] = parse_value(spec, value, origin)
        origins[key] = origin

    for key, value in read_file(file).items():
        put(key, value, f"file {file}")
    for spec in SPECS:
        if spec.variable in variables:
            put(spec.key, variables[spec.variable], f"variable {spec.variable}")
    _refuse_unknown(variables)
    for key, value in (flags or {}).items():
        if value is not None:
            put(key, value, COMMAND_LINE)
    return Loaded(Settings(**values), origins)


def _refuse_unknown(variables: Mapping[str, str]) -> None:
    known = {spec.variable for spec in SPECS} | {"LOCALGLM_CONFIG", "LOCALGLM_TARGET"}
    for name in sorted(variables):
        if name.startswith("LOCALGLM_") and name not in known:
            raise SettingsError(
                f"the environment variable {name} sets nothing",
                why="no setting has that name",
                try_="see localglm config show, or unset it",
            )


def read_file(file: Path) -> dict[str, Any]:
    """Return the dotted keys of a settings file; a missing file has none.

    Raises: SettingsError when it cannot be read or is not valid TOML.
    """
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as err:
        raise SettingsError(
            f"the settings file {file} cannot be read", why=str(err), try_="mend or delete it"
        ) from err
    flat: dict[str, Any] = {}
    for section, content in document.items():
        if not isinstance(content, dict):
            spec_of(section)
        for key, value in content.items():
            flat[f"{section}.{key}"] = value
    return flat
