"""Read the primitive values of a GGUF header from mapped bytes, checking every length first."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from struct import Struct
from types import MappingProxyType
from typing import Any

import numpy as np

from localglm.arrays import AnyArray
from localglm.errors import ModelFileError
from localglm.gguf.strings import StringArray

STRINGS_LIMIT = 1 << 22  # strings in all arrays of a file; the real vocabulary has 473 thousand
NUMBERS_LIMIT = 1 << 24  # numbers in one array; the real ones have 155 thousand
TEXT_BYTES_LIMIT = 32 << 20  # scalar strings of a file together; the real ones take 50 KiB
NAME_BYTES_LIMIT = 1 << 16  # the format's own limit for a key

_U32 = Struct("<I")
_U64 = Struct("<Q")
_BOOL, _STRING, _ARRAY = 7, 8, 9
_SCALARS: Mapping[int, np.dtype[Any]] = MappingProxyType(
    {
        0: np.dtype("<u1"),
        1: np.dtype("<i1"),
        2: np.dtype("<u2"),
        3: np.dtype("<i2"),
        4: np.dtype("<u4"),
        5: np.dtype("<i4"),
        6: np.dtype("<f4"),
        _BOOL: np.dtype("?"),
        10: np.dtype("<u8"),
        11: np.dtype("<i8"),
        12: np.dtype("<f8"),
    }
)


def shown(text: str) -> str:
    """Quote text from a file for a message: no control characters, at most 80 characters."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


class Cursor:
    """A position in the mapped bytes of one file."""

    __slots__ = ("_data", "_path", "_strings_left", "_text_left", "position")

    def __init__(self, data: memoryview, path: Path) -> None:
        self._data = data
        self._path = path
        self._strings_left = STRINGS_LIMIT
        self._text_left = TEXT_BYTES_LIMIT
        self.position = 0

    @property
    def file_name(self) -> str:
        """Name of the file, for messages."""
        return self._path.name

    @property
    def left(self) -> int:
        """Bytes between here and the end of the file."""
        return len(self._data) - self.position

    def damaged(self, why: str) -> ModelFileError:
        """Build the error for a header that cannot be right."""
        return ModelFileError(
            f"{self._path.name} has a damaged header", why=why, try_="download the file again"
        )

    def take(self, count: int, what: str) -> memoryview:
        """Return the next ``count`` bytes and step over them."""
        if count > self.left:
            raise self.damaged(
                f"{what} needs {count} bytes at byte {self.position}, but the file ends after"
                f" {self.left}, as after a download that was cut short"
            )
        start = self.position
        self.position += count
        return self._data[start : self.position]

    def u32(self, what: str) -> int:
        """Read a 32-bit count."""
        return int(_U32.unpack(self.take(4, what))[0])

    def u64(self, what: str) -> int:
        """Read a 64-bit count."""
        return int(_U64.unpack(self.take(8, what))[0])

    def name(self, what: str) -> str:
        """Read the name of a key or tensor."""
        length = self.u64(f"the length of {what}")
        if not 0 < length < NAME_BYTES_LIMIT:
            raise self.damaged(f"{what} is {length} bytes long")
        return self._text(length, what)

    def value(self, key: str) -> object:
        """Read the type and the value of a metadata key.

        Returns bool, int, float, str, a read-only numpy array of numbers, or a StringArray.
        """
        kind = self.u32(f"the type of {shown(key)}")
        if kind == _STRING:
            return self._scalar_string(key)
        if kind == _ARRAY:
            return self._array(key)
        if kind not in _SCALARS:
            raise self.damaged(f"{shown(key)} has the unknown value type {kind}")
        return self._numbers(key, kind, 1)[0].item()

    def _text(self, length: int, what: str) -> str:
        try:
            return str(self.take(length, what), "utf-8")
        except UnicodeDecodeError as error:
            raise self.damaged(f"{what} is not UTF-8 text: {error}") from None

    def _scalar_string(self, key: str) -> str:
        length = self.u64(f"the length of {shown(key)}")
        self._text_left -= length
        if self._text_left < 0:
            raise self.damaged(
                f"{shown(key)} is {length} bytes long;"
                f" texts may take {TEXT_BYTES_LIMIT} bytes in all"
            )
        return self._text(length, shown(key))

    def _array(self, key: str) -> object:
        kind = self.u32(f"the element type of {shown(key)}")
        count = self.u64(f"the length of {shown(key)}")
        if kind == _STRING:
            return self._strings(key, count)
        if kind == _ARRAY:
            raise self.damaged(f"{shown(key)} is an array of arrays, which no such model has")
        if kind not in _SCALARS:
            raise self.damaged(f"{shown(key)} has the unknown element type {kind}")
        return self._numbers(key, kind, count)

    def _numbers(self, key: str, kind: int, count: int) -> AnyArray:
        dtype = _SCALARS[kind]
        if count > NUMBERS_LIMIT:
            raise self.damaged(f"{shown(key)} claims {count} numbers")
        raw = self.take(count * dtype.itemsize, f"{shown(key)} ({count} values)")
        if kind == _BOOL and count and np.frombuffer(raw, np.uint8).max() > 1:
            raise self.damaged(f"{shown(key)} holds a truth value other than 0 and 1")
        return np.frombuffer(raw, dtype)

    def _strings(self, key: str, count: int) -> StringArray:
        """Walk over a string array: only its length fields are looked at."""
        self._strings_left -= count
        if self._strings_left < 0 or count * 8 > self.left:
            raise self.damaged(f"{shown(key)} claims {count} strings in {self.left} bytes")
        data, start, unpack = self._data, self.position, _U64.unpack_from
        place = start
        try:
            for _ in range(count):
                place += 8 + unpack(data, place)[0]
        except (struct.error, OverflowError):
            place = len(data) + 1
        if place > len(data):
            raise self.damaged(f"{shown(key)} ({count} strings) runs past the end of the file")
        self.position = place
        return StringArray(data, (start, place), count, key)
