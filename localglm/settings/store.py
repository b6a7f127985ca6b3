"""Change single values in the settings file, keeping its comments and order."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from localglm.errors import SettingsError
from localglm.settings.load import settings_text
from localglm.settings.schema import parse_value, shown, spec_of


def set_value(file: Path, key: str, text: str) -> Any:
    """Set ``key`` and return the value as stored.

    Raises: SettingsError for an unknown key, a bad value or a file that cannot be written.
    """
    spec = spec_of(key)
    value = shown(spec, parse_value(spec, text, "config set"))
    document = _read(file)
    section, name = key.split(".")
    if section not in document:
        document[section] = tomlkit.table()
    _table(document, file, section)[name] = value
    _write(file, document)
    return value


def unset_value(file: Path, key: str) -> bool:
    """Remove ``key`` so that its default counts again; return whether it was there."""
    spec_of(key)
    document = _read(file)
    section, name = key.split(".")
    if section not in document or name not in _table(document, file, section):
        return False
    del _table(document, file, section)[name]
    _write(file, document)
    return True


def _table(document: tomlkit.TOMLDocument, file: Path, section: str) -> MutableMapping[str, Any]:
    table = document[section]
    if not isinstance(table, MutableMapping):
        raise SettingsError(
            f"the settings file {file} has {section!r} where a section is expected",
            why=f"{section} is no table",
            try_=f"write [{section}] and its settings below it",
        )
    return table


def _read(file: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(settings_text(file))
    except FileNotFoundError:
        return tomlkit.document()
    except (OSError, ValueError, TOMLKitError) as err:
        raise SettingsError(
            f"the settings file {file} cannot be read", why=str(err), try_="mend or delete it"
        ) from err


def _write(file: Path, document: tomlkit.TOMLDocument) -> None:
    file = file.resolve()  # a link to a dotfile collection stays a link
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8", newline="\n") as out:
            out.write(tomlkit.dumps(document))
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    except OSError as err:
        part.unlink(missing_ok=True)
        raise SettingsError(
            f"the settings file {file} cannot be written",
            why=str(err),
            try_="check the folder's permissions, or name another file with LOCALGLM_CONFIG",
        ) from err
