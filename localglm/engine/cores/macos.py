"""Fast cores of a macOS system."""

from __future__ import annotations

import ctypes


def fast_cores() -> int | None:
    """Return the cores of the fastest kind, or None where all are alike or nobody tells.

    Only for macOS.
    """
    kinds = _number("hw.nperflevels")
    return _number("hw.perflevel0.physicalcpu") if kinds is not None and kinds > 1 else None


def _number(name: str) -> int | None:
    system = ctypes.CDLL(None)
    value, size = ctypes.c_int32(0), ctypes.c_size_t(4)
    code = system.sysctlbyname(
        name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return value.value if code == 0 else None
