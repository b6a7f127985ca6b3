"""What this process itself holds, and giving back what it no longer uses."""

from __future__ import annotations

import ctypes
from pathlib import Path

import psutil

_PROC = Path("/proc")


def anonymous_bytes(pid: int | None = None) -> int:
    """Return the memory this process, or ``pid``, holds that no file stands behind."""
    status = _PROC / ("self" if pid is None else str(pid)) / "status"
    if status.is_file():
        return anonymous_in(status.read_text(encoding="ascii", errors="replace"))
    info = psutil.Process(pid).memory_full_info()
    return int(getattr(info, "private", info.uss))  # private: on Windows


def anonymous_in(status: str) -> int:
    """Return the anonymous and shared bytes that the text of /proc/PID/status states."""
    sizes = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return sum(1024 * int(sizes[name].split()[0]) for name in ("RssAnon", "RssShmem"))


def give_back_unused() -> None:
    """Give memory that was freed back to the system, where the C library keeps it otherwise."""
    if not (_PROC / "self").is_dir():
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none and keeps less
    if trim is not None:
        trim(ctypes.c_size_t(0))
