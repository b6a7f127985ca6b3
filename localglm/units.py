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


def count_text(count: int) -> str:
    """Return a count: ``271,174``, ``17.4 M``, ``313.33 B``."""
    if count >= 10**9:
        return f"{count / 10**9:.2f} B"
    if count >= 10**6:
        return f"{count / 10**6:.1f} M"
    return f"{count:,}"


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
