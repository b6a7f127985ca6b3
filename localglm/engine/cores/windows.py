"""Fast cores of a Windows system."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

_PROCESSOR_CORE = 0
_EFFICIENCY_AT = 9  # kind, size, flags, then the class of the core


def fast_cores() -> int | None:
    """Return the cores of the fastest kind, or None where all are alike or nobody tells.

    Only for Windows.
    """
    load: Any = getattr(ctypes, "WinDLL")  # noqa: B009 - only Windows has it
    ask = load("kernel32").GetLogicalProcessorInformationEx
    size = ctypes.c_uint32(0)
    ask(_PROCESSOR_CORE, None, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    if not size.value or not ask(_PROCESSOR_CORE, room, ctypes.byref(size)):
        return None
    return fastest_of(room.raw[: size.value])


def fastest_of(records: bytes) -> int | None:
    """Return how many cores have the highest efficiency class, None when all have the same.

    ``records`` are those of GetLogicalProcessorInformationEx for cores: a higher class is a faster
    core.
    """
    classes: list[int] = []
    at = 0
    while at + _EFFICIENCY_AT < len(records):
        kind, length = struct.unpack_from("<II", records, at)
        if kind == _PROCESSOR_CORE:
            classes.append(records[at + _EFFICIENCY_AT])
        if length == 0:
            break
        at += length
    return classes.count(max(classes)) if len(set(classes)) > 1 else None
