"""Ask the system for processor, memory and terminal."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path

import psutil

from localglm.devices.answers import Memory, Processor, Terminal
from localglm.errors import LocalGlmError
from localglm.settings.load import environment


def processor() -> Processor:
    """Name the processor and the instruction sets our library has for it."""
    allowed = getattr(os, "sched_getaffinity", None)
    sets, problem = _instruction_sets()
    return Processor(
        name=_processor_name(),
        machine=platform.machine(),
        logical=os.cpu_count() or 1,
        physical=psutil.cpu_count(logical=False),
        allowed=len(allowed(0)) if allowed is not None else None,
        instruction_sets=sets,
        library_problem=problem,
    )


def _instruction_sets() -> tuple[tuple[str, ...], str]:
    from localglm.backends.cpu.library import (  # noqa: PLC0415 - loads native code
        ISA_IDS,
        library_path,
        load,
    )

    try:
        library = load(library_path())
    except LocalGlmError as error:
        return (), f"{error.what}: {error.why}"
    return tuple(name for name, number in ISA_IDS.items() if library.lg_isa_supported(number)), ""


def _processor_name() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def memory() -> Memory:
    """Measure main memory, swap and what the system will still promise."""
    main = psutil.virtual_memory()
    if sys.platform == "win32":
        # Performance counters, which psutil asks for the swap, may be turned off.
        limit, free = _windows_commit()
        swap = max(limit - main.total, 0) if limit is not None else 0
    else:
        limit, free = _linux_commit()
        swap = psutil.swap_memory().total
    return Memory(main.total, main.available, swap, limit, free, _container_limit())


class _Status(ctypes.Structure):
    """MEMORYSTATUSEX of Windows."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("total", "free", "commit", "commit_free")),
        *((name, ctypes.c_uint64) for name in ("space", "space_free", "extended")),
    )


def _windows_commit() -> tuple[int | None, int | None]:
    if sys.platform == "win32":
        status = _Status(length=ctypes.sizeof(_Status))
        if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            return int(status.commit), int(status.commit_free)
    return None, None


def _linux_commit() -> tuple[int | None, int | None]:
    """Return the limit only where Linux keeps to it: mode 2 of its overcommit setting."""
    try:
        if Path("/proc/sys/vm/overcommit_memory").read_text(encoding="ascii").strip() != "2":
            return None, None
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None, None
    facts = {key: int(value.split()[0]) * 1024 for key, value in (x.split(":") for x in lines)}
    limit, used = facts.get("CommitLimit"), facts.get("Committed_AS")
    if limit is None or used is None:
        return None, None
    return limit, max(limit - used, 0)


def _container_limit() -> int | None:
    """Return the memory a container allows, or None without one."""
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return None


def terminal(is_terminal: str, columns: str, lines: str, encoding: str) -> Terminal:
    """Add what the environment tells to what the starting process saw of its streams."""
    variables = environment()
    program = variables.get("TERM_PROGRAM") or (
        "Windows Terminal" if "WT_SESSION" in variables else ""
    )
    return Terminal(
        is_terminal=is_terminal == "yes",
        columns=int(columns),
        lines=int(lines),
        encoding=encoding,
        term=variables.get("TERM", ""),
        colour=variables.get("COLORTERM", ""),
        program=program,
    )
