"""How often each expert was wanted, where old uses count less and less."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from localglm.arrays import F64, I64

HALF_LIFE = 256
"""Turns of a layer after which a use counts half."""


class AgedFrequency:
    """A worth for every expert that grows with each use and halves every ``HALF_LIFE`` turns.

    Worths are kept as log2(worth) + turn / HALF_LIFE: that value only changes with a use, orders
    experts as their worths do at any moment, and needs no pass over all of them as time goes by.
    """

    def __init__(self, layers: Iterable[int], experts: int) -> None:
        self._experts = experts
        self._first = {layer: at * experts for at, layer in enumerate(layers)}
        self._worth: F64 = np.full(len(self._first) * experts, -np.inf)
        self._turns = dict.fromkeys(self._first, 0)

    def row(self, layer: int, expert: int) -> int:
        """Return where the worth of an expert stands."""
        return self._first[layer] + expert

    def use(self, layer: int, experts: Iterable[int]) -> None:
        """Count one use of each of ``experts``: one turn of their layer."""
        self._turns[layer] += 1
        now = self._turns[layer] / HALF_LIFE
        for expert in experts:
            row = self.row(layer, expert)
            self._worth[row] = now + math.log2(2.0 ** (self._worth[row] - now) + 1.0)

    def of(self, rows: I64) -> F64:
        """Return the worths at ``rows``; only their order means anything."""
        return self._worth[rows]
