"""The commit limit of Windows: memory that may be promised, whether or not it is in use."""

from __future__ import annotations

import ctypes
import sys
from typing import ClassVar


class _PerformanceInfo(ctypes.Structure):
    """``PERFORMANCE_INFORMATION``; sizes are in pages."""

    _fields_: ClassVar = [
        ("size", ctypes.c_uint32),
        ("commit_total", ctypes.c_size_t),
        ("commit_limit", ctypes.c_size_t),
        ("commit_peak", ctypes.c_size_t),
        ("physical_total", ctypes.c_size_t),
        ("physical_available", ctypes.c_size_t),
        ("system_cache", ctypes.c_size_t),
        ("kernel_total", ctypes.c_size_t),
        ("kernel_paged", ctypes.c_size_t),
        ("kernel_nonpaged", ctypes.c_size_t),
        ("page_size", ctypes.c_size_t),
        ("handles", ctypes.c_uint32),
        ("processes", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
    ]


def free_commit() -> int | None:
    """Return the bytes that may still be promised; None where the system has no such limit."""
    if sys.platform == "win32":
        return _windows_commit()
    return None


def _windows_commit() -> int | None:
    info = _PerformanceInfo(size=ctypes.sizeof(_PerformanceInfo))
    library = getattr(ctypes, "windll")  # noqa: B009 - only there, and known to mypy only there
    if not library.psapi.GetPerformanceInfo(ctypes.byref(info), info.size):
        return None
    return int(max(0, info.commit_limit - info.commit_total) * info.page_size)
