"""Read a recorded computer and choose for it again, on any other computer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from localglm.devices.merge import machine_of
from localglm.devices.record import Machine, Recording
from localglm.errors import LocalGlmError

SCHEMA_VERSION = 1


def recording_of(data: Any, source: str = "the recording") -> Recording:
    """Return the recording that plain JSON data holds.

    Raises: LocalGlmError when it is none.
    """
    try:
        found = msgspec.convert(data, Recording)
    except msgspec.ValidationError as error:
        raise _unusable(source, str(error)) from error
    if found.schema_version != SCHEMA_VERSION:
        raise _unusable(source, f"it has version {found.schema_version}, not {SCHEMA_VERSION}")
    return found


def read(file: Path) -> Recording:
    """Return the recording a file holds.

    Raises: LocalGlmError when it holds none, OSError when it cannot be read.
    """
    try:
        data = msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as error:
        raise _unusable(str(file), str(error)) from error
    return recording_of(data, str(file))


def write(recording: Recording) -> bytes:
    """Return a recording as JSON."""
    return msgspec.json.format(msgspec.json.encode(recording), indent=1)


def machine(file: Path) -> Machine:
    """Return what a recorded computer has.

    Raises: LocalGlmError when the file holds no recording.
    """
    return machine_of(read(file))


def _unusable(source: str, why: str) -> LocalGlmError:
    return LocalGlmError(
        f"{source} is no recorded computer",
        why=why,
        try_="record one with: localglm backends --record FILE",
    )
