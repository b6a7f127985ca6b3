"""The reader's native library as Python sees it: where it lies and its functions."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import ClassVar

from localglm.errors import DeviceError

FOLDER = Path(__file__).parent / "_native"
"""Where the build puts the library."""

SPANS = 3
"""Spans of one request: ``LG_SPANS`` of csrc/lg_reader.h."""


class Span(ctypes.Structure):
    """``lg_span`` of csrc/lg_reader.h."""

    _fields_: ClassVar = [
        ("file", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("nbytes", ctypes.c_int64),
        ("needed", ctypes.c_int64),
        ("to", ctypes.c_void_p),
    ]


class Ended(ctypes.Structure):
    """``lg_ended`` of csrc/lg_reader.h."""

    _fields_: ClassVar = [
        ("id", ctypes.c_int64),
        ("code", ctypes.c_int32),
        ("fault", ctypes.c_int32),
        ("span", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Account(ctypes.Structure):
    """``lg_account`` of csrc/lg_reader.h."""

    _fields_: ClassVar = [
        ("nbytes", ctypes.c_int64),
        ("reads", ctypes.c_int64),
        ("busy", ctypes.c_int64),
        ("flight", ctypes.c_int64),
        ("outstanding", ctypes.c_int32),
        ("requests", ctypes.c_int32),
    ]


READ = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.POINTER(ctypes.c_int32),
)  # fmt: skip
"""``lg_read`` of csrc/lg_file.h: file, address, bytes, offset, where the fault goes."""

_LETTERS = {
    "p": ctypes.c_void_p,
    "i": ctypes.c_int,
    "l": ctypes.c_int64,
    "s": ctypes.POINTER(Span),
    "e": ctypes.POINTER(Ended),
    "a": ctypes.POINTER(Account),
    "h": ctypes.POINTER(ctypes.c_int64),
    "v": None,
}
# the result, then the arguments, one letter each
_FUNCTIONS = {
    "lg_file_open": "ipih",
    "lg_file_close": "vl",
    "lg_file_forget": "vlll",
    "lg_memory_take": "pl",
    "lg_memory_give": "vpl",
    "lg_reader_create": "pillp",
    "lg_reader_submit": "iplsii",
    "lg_reader_promote": "vpl",
    "lg_reader_withdraw": "vpl",
    "lg_reader_wait": "iplei",
    "lg_reader_sum": "vpa",
    "lg_reader_close": "ipl",
}


def library_path(folder: Path = FOLDER) -> Path:
    """Return where the library of this system lies.

    Raises: DeviceError when it has not been built.
    """
    names = {"win32": "localglm_reader.dll", "darwin": "liblocalglm_reader.dylib"}
    path = folder / names.get(sys.platform, "liblocalglm_reader.so")
    if not path.is_file():
        raise DeviceError(
            f"the library that reads experts, {path.name}, is missing",
            why=f"{folder} does not hold it; localglm compiles nothing while it runs",
            try_="run: python -m build_tools.native (in a source checkout), or reinstall localglm",
        )
    return path


def load(path: Path | None = None) -> ctypes.CDLL:
    """Load the library, from its usual place unless another is given, and declare its functions.

    Raises: DeviceError when it is missing, refused by the system, or lacks a function.
    """
    place = library_path() if path is None else path
    try:
        library = ctypes.CDLL(str(place))
        for name, letters in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype = _LETTERS[letters[0]]
            function.argtypes = [_LETTERS[letter] for letter in letters[1:]]
    except (OSError, AttributeError) as error:
        raise DeviceError(
            f"the library that reads experts, {place.name}, cannot be used",
            why=str(error),
            try_="build it again: python -m build_tools.native",
        ) from error
    return library


def fault_text(fault: int) -> str:
    """Return what the system says about an error number of the library."""
    if sys.platform == "win32":
        return ctypes.FormatError(fault).strip()
    return os.strerror(fault)


def path_argument(path: Path) -> ctypes.c_void_p:
    """Return ``path`` as ``lg_file_open`` takes it; the text lives as long as the result."""
    text = (
        ctypes.c_wchar_p(str(path))
        if sys.platform == "win32"
        else ctypes.c_char_p(os.fsencode(path))
    )
    return ctypes.cast(text, ctypes.c_void_p)
