"""Build the settings from defaults, the settings file, the environment and flags, in that order.

The only place that reads the environment. Every value keeps where it came from.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localglm.errors import SettingsError
from localglm.settings.schema import COMMAND_LINE, SECTIONS, SPECS, Settings, parse_value, spec_of

_LARGEST_FILE = 1 << 20


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
        document = tomllib.loads(settings_text(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as err:
        raise SettingsError(
            f"the settings file {file} cannot be read", why=str(err), try_="mend or delete it"
        ) from err
    flat: dict[str, Any] = {}
    for section, content in document.items():
        if section not in SECTIONS or not isinstance(content, dict):
            raise SettingsError(
                f"the settings file {file} has {section!r} where a section is expected",
                why=f"its sections are {', '.join(f'[{name}]' for name in SECTIONS)}",
                try_="see localglm config show for every setting",
            )
        for key, value in content.items():
            flat[f"{section}.{key}"] = value
    return flat


def settings_text(file: Path) -> str:
    """Return the text of a settings file; only regular files are read, up to a sane size.

    Raises: OSError when it cannot be read, ValueError when it is no such file or not UTF-8.
    """
    status = file.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is no regular file")
    if status.st_size > _LARGEST_FILE:
        raise ValueError(f"it is larger than {_LARGEST_FILE >> 10} KiB")
    # Windows editors may put a byte order mark first.
    return file.read_text(encoding="utf-8-sig")
