"""Memory of results, used again once nobody looks at it.

A prompt makes hundreds of arrays of many megabytes. Fresh memory comes from the system page by
page, each cleared on first touch, which costs more than many of the ops that fill it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from localglm.backends.cpu.boundary import memory_short

if TYPE_CHECKING:
    from localglm.arrays import F32, U8

_F32 = np.dtype(np.float32)
_SMALL = 1 << 16
_SWEEP = 4096
_LINE = 64


class Results:
    """Float32 arrays on lent memory; ``lent`` counts them.

    Small ones are ordinary arrays. What was not lent for a few thousand results, a few tokens, goes
    back to the system.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self._idle: dict[int, list[U8]] = {}
        self.lent = 0
        self._used: set[int] = set()

    def empty(self, shape: tuple[int, ...], room: int = 0) -> F32:
        """Return uninitialised memory for a result.

        With ``room`` for that many values, so that a result which grows keeps its memory.

        Raises: MemoryShortError when the system refuses it.
        """
        self.lent += 1
        if self.lent % _SWEEP == 0:
            self._sweep()
        count = prod(shape)
        try:
            if count * 4 <= _SMALL:
                return np.empty(shape, _F32)
            size = _rounded(max(count, room) * 4)
            return np.asarray(_Loan(self, self._memory(size), shape))
        except MemoryError as error:
            raise memory_short(shape, _F32) from error

    def _memory(self, size: int) -> U8:
        self._used.add(size)
        idle = self._idle.get(size)
        if idle:
            return idle.pop()
        memory = np.empty(size + _LINE, np.uint8)
        self.nbytes += size + _LINE
        return memory

    def take_back(self, memory: U8) -> None:
        """Keep the memory of an array that is gone."""
        self._idle.setdefault(memory.nbytes - _LINE, []).append(memory)

    def drop_idle(self) -> None:
        """Let go of everything that is not lent now."""
        self._used.clear()
        self._sweep()

    def _sweep(self) -> None:
        """Let go of sizes nobody asked for since the last sweep."""
        for size in [s for s in self._idle if s not in self._used]:
            self.nbytes -= (size + _LINE) * len(self._idle.pop(size))
        self._used.clear()


class _Loan:
    """What an array and all its views refer to; dies with the last of them."""

    __slots__ = ("__array_interface__", "memory", "results")

    def __init__(self, results: Results, memory: U8, shape: tuple[int, ...]) -> None:
        self.results = results
        self.memory = memory
        address = (memory.ctypes.data + _LINE - 1) // _LINE * _LINE
        self.__array_interface__: dict[str, Any] = {
            "shape": shape, "typestr": _F32.str, "data": (address, False), "version": 3,
        }  # fmt: skip

    def __del__(self) -> None:
        self.results.take_back(self.memory)


def _rounded(size: int) -> int:
    """Return the size up to a multiple of an eighth of its leading power of two."""
    step = 1 << max(12, size.bit_length() - 4)
    return (size + step - 1) // step * step
