"""How good guesses are, and whether they pay."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

_REMEMBERED = 200
_FEWEST = 40  # judged guesses before they are called bad
_PAYING = 0.5


class GuessRecord:
    """The last guesses of experts that were not in memory, and which of them were then wanted.

    Guesses are judged whether they were read or not, so a pause ends when they get better.
    """

    def __init__(self) -> None:
        self._pending: dict[int, frozenset[int]] = {}
        self._judged: deque[bool] = deque(maxlen=_REMEMBERED)

    def guess(self, layer: int, experts: Collection[int]) -> None:
        """Note which experts are thought to be wanted next in ``layer``."""
        self._pending[layer] = frozenset(experts)

    def judge(self, layer: int, wanted: Collection[int]) -> None:
        """Compare the guess for ``layer``, if there is one, with what is wanted."""
        guessed = self._pending.pop(layer, frozenset())
        self._judged.extend(expert in wanted for expert in guessed)

    @property
    def rate(self) -> float | None:
        """Share of the last guesses that were right; None before the first."""
        return sum(self._judged) / len(self._judged) if self._judged else None

    @property
    def pays(self) -> bool:
        """Whether guessed experts are worth reading."""
        rate = self.rate
        return rate is None or len(self._judged) < _FEWEST or rate >= _PAYING
