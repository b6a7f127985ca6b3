"""String arrays of a GGUF header, decoded only when they are read.

A vocabulary of this model family holds 155 thousand tokens and 318 thousand merges. Opening a file
walks over their length fields and keeps nothing but the place where they start.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import overload

from localglm.errors import ModelFileError

_U64 = Struct("<Q")


class StringArray(Sequence[str]):
    """A read-only sequence of ``count`` strings that start at ``start`` in ``data``."""

    __slots__ = ("_count", "_data", "_label", "_starts", "_stop")

    def __init__(self, data: memoryview, span: tuple[int, int], count: int, label: str) -> None:
        self._data = data[span[0] : span[1]]
        self._stop = span[1] - span[0]
        self._count = count
        self._label = label
        self._starts: array[int] | None = None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"StringArray({self._label}, {self._count} strings)"

    def __iter__(self) -> Iterator[str]:
        data, position, unpack = self._data, 0, _U64.unpack_from
        for index in range(self._count):
            start = position + 8
            position = start + unpack(data, position)[0]
            yield self._decode(index, start, position)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(index)
        start = self._index()[place]
        return self._decode(place, start, start + _U64.unpack_from(self._data, start - 8)[0])

    def _index(self) -> array[int]:
        """Find where each string starts, once."""
        if self._starts is None:
            starts, data, position, unpack = array("Q"), self._data, 0, _U64.unpack_from
            for _ in range(self._count):
                starts.append(position + 8)
                position += 8 + unpack(data, position)[0]
            self._starts = starts
        return self._starts

    def _decode(self, index: int, start: int, stop: int) -> str:
        try:
            return str(self._data[start:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise ModelFileError(
                f"{self._label}[{index}] is not UTF-8 text",
                why=str(error),
                try_="download the file again",
            ) from None
