"""Sizes, counts and durations in words."""

from __future__ import annotations

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP = 1024
_MINUTE = 60
_TENTH_BELOW = 10


def size_text(nbytes: int) -> str:
    """Return bytes with three significant digits or so: ``92.9 GiB``, ``512 B``."""
    value, unit = float(nbytes), 0
    while abs(value) >= _STEP and unit < len(_BINARY) - 1:
        value, unit = value / _STEP, unit + 1
    if unit == 0:
        return f"{nbytes} B"
    return f"{value:.1f} {_BINARY[unit]}"


def count_text(count: float) -> str:
    """Return a large count as people say it: ``312 B``, ``17.4 B``, ``768 K``."""
    value = float(count)
    for unit in ("", "K", "M"):
        if abs(value) < 999.5:
            return _short(value, unit)
        value /= 1000
    return _short(value, "B")


def _short(value: float, unit: str) -> str:
    digits = 1 if unit and abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {unit}".rstrip()


def duration_text(seconds: float) -> str:
    """Return a duration: ``0.4 s``, ``12 s``, ``3 min 05 s``, ``2 h 04 min``."""
    if seconds < _TENTH_BELOW:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    minutes, rest = divmod(whole, _MINUTE)
    if minutes < _MINUTE:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours} h {minutes:02d} min"
