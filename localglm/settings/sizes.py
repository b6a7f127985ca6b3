"""Sizes as a person writes them: ``12GiB``, ``1.5 GB``, ``800 MiB``."""

from __future__ import annotations

import re

_UNITS = {
    "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([KMGT]I?B|B)", re.ASCII | re.IGNORECASE)
_SHOWN = ("TiB", "GiB", "MiB", "KiB", "B")


def parse_size(text: str) -> int:
    """Return the bytes that a number with its unit stands for.

    Raises: ValueError when it is no size; a bare number is none, its unit would be a guess.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    return round(float(found[1]) * _UNITS[found[2].upper()])


def write_size(nbytes: int) -> str:
    """Return the shortest text that ``parse_size`` turns into exactly as many bytes."""
    for unit in _SHOWN:
        whole, rest = divmod(nbytes, _UNITS[unit.upper()])
        if whole and not rest:
            return f"{whole}{unit}"
    return f"{nbytes}B"
