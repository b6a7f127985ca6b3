"""The native library as Python sees it: where it lies, its functions, what its codes mean.

Nothing is compiled here: a missing library is an error that says how to build it.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from pathlib import Path
from typing import NoReturn

import psutil

from localglm.errors import (
    DeviceError,
    LocalGlmError,
    MemoryShortError,
    NumericFaultError,
    ShapeError,
)

FOLDER = Path(__file__).parent / "_native"
"""Where the build puts the library."""

ISA_IDS = {"portable": 0, "avx2": 1, "neon": 2, "avx512": 3}
"""Instruction sets by name; the numbers are those of csrc/lg_isa.h."""

_ACCESS_VIOLATION = 0xC0000005

# One letter per argument after pool and instruction set: p address, i int, l int64, f float.
_OPS = {
    "lg_embed": "ipllplp",
    "lg_matmul": "iipllplp",
    "lg_matmuls": "ipllpl",
    "lg_head_matmul": "iiplllplp",
    "lg_expert_ffn": "ipppllp",
    "lg_swiglu": "ppplif",
    "lg_add": "pppl",
    "lg_sigmoid_all": "ppl",
    "lg_rms_norm": "pppllf",
    "lg_layer_norm": "ppppllf",
    "lg_gated_norm": "ppppllf",
    "lg_store_half": "ppll",
    "lg_combine": "pppplll",
    "lg_route": "ppppplllf",
    "lg_hyper_pre": "iipppppppllliff",
    "lg_hyper_post": "ppppplll",
    "lg_stream_mean": "pplll",
    "lg_short_conv": "pppplll",
    "lg_kda_decay": "pppplllf",
    "lg_kda_scan": "pppppppllll",
    "lg_conv_scan": "ppppppplllll",
    "lg_pool_keys": "pppplll",
    "lg_indexer_scores": "pppipllllll",
    "lg_select_cells": "ppplllllli",
    "lg_mla_attend": "ppippplllllf",
}
_LETTERS = {
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "l": ctypes.c_int64,
    "f": ctypes.c_float,
}
_CODES: dict[int, tuple[type[LocalGlmError], str]] = {
    1: (MemoryShortError, "the system refused scratch memory"),
    2: (DeviceError, "the storage type has no kernels"),
    3: (ShapeError, "sizes do not belong together"),
    4: (ShapeError, "an index lies outside its array"),
    5: (DeviceError, "the library lacks this instruction set"),
    6: (NumericFaultError, "a value to choose by is not a number"),
}


def library_path(folder: Path = FOLDER) -> Path:
    """Return where the library of this system lies.

    Raises: DeviceError when it has not been built.
    """
    names = {"win32": "localglm_cpu.dll", "darwin": "liblocalglm_cpu.dylib"}
    path = folder / names.get(sys.platform, "liblocalglm_cpu.so")
    if not path.is_file():
        raise DeviceError(
            f"the CPU library {path.name} is missing",
            why=f"{folder} does not hold it; localglm compiles nothing while it runs",
            try_="run: python -m build_tools.native (in a source checkout), or reinstall localglm",
        )
    return path


def load(path: Path) -> ctypes.CDLL:
    """Load the library and declare its functions.

    Raises: DeviceError when the system refuses it or a function is missing.
    """
    try:
        library = ctypes.CDLL(str(path))
        for name, letters in _OPS.items():
            op = getattr(library, name)
            op.restype = ctypes.c_int
            op.argtypes = [ctypes.c_void_p, ctypes.c_int, *(_LETTERS[c] for c in letters)]
        library.lg_is_finite.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.lg_pool_create.restype = ctypes.c_void_p
        library.lg_pool_destroy.argtypes = [ctypes.c_void_p]
        library.lg_pool_destroy.restype = None
    except (OSError, AttributeError) as error:
        raise DeviceError(
            f"the CPU library {path.name} cannot be used",
            why=str(error),
            try_="build it again: python -m build_tools.native",
        ) from error
    return library


def choose_isa(library: ctypes.CDLL, name: str | None) -> str:
    """Return the instruction set to use: ``name``, or the best this processor runs.

    Raises: DeviceError when ``name`` does not exist or does not run here.
    """
    available = [isa for isa, number in ISA_IDS.items() if library.lg_isa_supported(number)]
    if name is None:
        best = library.lg_isa_best()
        return next(isa for isa in available if ISA_IDS[isa] == best)
    if name not in available:
        raise DeviceError(
            f"instruction set {name!r} cannot be used",
            why=f"this processor and library offer: {', '.join(available)}",
            try_="choose one of these, or leave the choice to localglm",
        )
    return name


def choose_threads(threads: int | None) -> int:
    """Return ``threads``, or the number of physical cores.

    Raises: DeviceError when it is below 1.
    """
    if threads is None:
        return psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    if threads < 1:
        raise DeviceError(
            f"{threads} threads cannot compute anything",
            why="the calling thread counts, so the least is 1",
            try_="give 1 or more, or leave the choice to localglm",
        )
    return threads


def _die_of(fault: OSError, op: str) -> NoReturn:
    """End the process with the system's code for a fault inside the library.

    Only Windows turns such a fault into an exception. The workers are lost in the middle of the op,
    so nothing can be computed any more; elsewhere the same fault ends the process by itself.
    """
    sys.stderr.write(f"{op}: {fault}\n")
    sys.stderr.flush()
    status = getattr(fault, "winerror", None) or _ACCESS_VIOLATION
    os._exit(ctypes.c_int32(status & 0xFFFFFFFF).value)


class Native:
    """The loaded library, one worker pool and one instruction set. Use it from one thread only."""

    def __init__(self, threads: int | None, isa: str | None) -> None:
        self._library = load(library_path())
        self.isa = choose_isa(self._library, isa)
        self.threads = choose_threads(threads)
        self._isa_id = ISA_IDS[self.isa]
        self._ops = {name: getattr(self._library, name) for name in _OPS}
        self._pool: int | None = self._library.lg_pool_create(self.threads)
        if self._pool is None:
            raise DeviceError(
                f"{self.threads} worker threads could not be started",
                why="the system refused a thread or its memory",
                try_="ask for fewer threads",
            )
        self._destroy = weakref.finalize(self, self._library.lg_pool_destroy, self._pool)

    def run(self, op: str, *arguments: float | None) -> None:
        """Run one op of the library on addresses and numbers that the caller has checked.

        Raises: the error that belongs to the code it returns.
        """
        if self._pool is None:
            raise DeviceError(f"{op}: the device is closed", try_="open a new device")
        try:
            code: int = self._ops[op](self._pool, self._isa_id, *arguments)
        except OSError as fault:
            _die_of(fault, op)
        if code:
            kind, why = _CODES[code]
            raise kind(f"{op.removeprefix('lg_')} failed on the CPU", why=why)

    def is_finite(self, address: int, count: int) -> bool:
        """Whether ``count`` float32 values hold neither an infinity nor a NaN."""
        return bool(self._library.lg_is_finite(address, count))

    def close(self) -> None:
        """Stop the workers; a second call does nothing."""
        self._pool = None
        self._destroy()
