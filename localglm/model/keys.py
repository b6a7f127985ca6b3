"""Typed access to the architecture keys of a model file.

Errors name the key as the file spells it.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from localglm.errors import ModelFileError
from localglm.gguf import ModelFile

LARGEST_COUNT = (1 << 31) - 1

_T = TypeVar("_T")


class Keys:
    """Reads keys of one file and collects notes about values that had to be assumed."""

    __slots__ = ("_file", "_notes")

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._notes: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed or overruled, one line each."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Add a line about something the user may want to know."""
        self._notes.append(text)

    def refuse(self, key: str, why: str) -> ModelFileError:
        """Build the error for a key whose value cannot be used."""
        return ModelFileError(
            f"{self._file.paths[0].name}: {self._file.spelled(key)} cannot be used",
            why=why,
            try_="use another file of the model, or a newer localglm if this one is recent",
        )

    def assumed(self, value: _T | None, key: str, default: _T) -> _T:
        """Return ``value``, or ``default`` with a note when the file does not have the key."""
        if value is not None:
            return value
        self.note(f"{self._file.spelled(key)} is absent: {default} is assumed")
        return default

    def required(self, value: _T | None, key: str) -> _T:
        """Return ``value``, or refuse the file when it does not have the key."""
        if value is None:
            raise ModelFileError(
                f"{self._file.paths[0].name}: the key {self._file.spelled(key)} is missing",
                why="it shapes the model and has no safe default",
                try_="use another file of the model, or ask its publisher to convert it again",
            )
        return value

    def count(self, key: str, *, low: int = 1, high: int = LARGEST_COUNT) -> int:
        """Read a required whole number in [low, high]."""
        return self.required(self.optional_count(key, low=low, high=high), key)

    def number(self, key: str) -> float:
        """Read a required finite number."""
        return self.required(self.optional_number(key), key)

    def epsilon(self, key: str) -> float:
        """Read a required number in (0, 1)."""
        return self._small(self.number(key), key)

    def optional_epsilon(self, key: str) -> float | None:
        """Read a number in (0, 1), or None when the key is absent."""
        value = self.optional_number(key)
        return None if value is None else self._small(value, key)

    def optional_count(self, key: str, *, low: int = 1, high: int = LARGEST_COUNT) -> int | None:
        """Read a whole number in [low, high], or None when the key is absent."""
        value = self._scalar(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, f"it is {value!r}; a whole number is expected")
        if not low <= value <= high:
            raise self.refuse(key, f"it is {value}; {low} to {high} is possible here")
        return value

    def optional_number(self, key: str) -> float | None:
        """Read a finite number, or None when the key is absent."""
        value = self._scalar(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(key, f"it is {value!r}; a number is expected")
        if not math.isfinite(value):
            raise self.refuse(key, f"it is {value}; a finite number is expected")
        return float(value)

    def optional_flag(self, key: str) -> bool | None:
        """Read a truth value, or None when the key is absent."""
        value = self._scalar(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.refuse(key, f"it is {value!r}; true or false is expected")

    def per_layer(self, key: str, layers: int, lengths: frozenset[int]) -> list[object] | None:
        """Read one value for each of ``layers`` blocks; a scalar stands for all of them.

        An array may have any length of ``lengths``. When it stops before the draft block, that
        block takes the last value.
        """
        value = self._file.get(key)
        if value is None:
            return None
        if isinstance(value, bool | int | float | str):
            return [value] * layers
        if isinstance(value, np.ndarray):
            if len(value) not in lengths:
                expected = " or ".join(map(str, sorted(lengths)))
                raise self.refuse(key, f"it has {len(value)} entries; {expected} are expected")
            found: list[object] = value[:layers].tolist()
        elif len(value) in lengths:  # type: ignore[arg-type]
            found = list(value)[:layers]  # type: ignore[call-overload]
        else:
            raise self.refuse(key, "it has the wrong number of entries")
        return found + found[-1:] * (layers - len(found))

    def _scalar(self, key: str) -> object:
        """Return the value; an array whose entries are all equal counts as one value."""
        value = self._file.get(key)
        if not isinstance(value, np.ndarray):
            return value
        if value.size == 0 or (value != value[0]).any():
            raise self.refuse(key, f"it is an array of {value.size} values that are not all equal")
        return value[0].item()

    def _small(self, value: float, key: str) -> float:
        if not 0 < value < 1:
            raise self.refuse(key, f"it is {value:g}; a number between 0 and 1 is expected")
        return value
