"""How a caller watches a forward pass and replaces what flows through it.

A probe names every intermediate as the oracle archives do: ``l<i>.attn_norm``, ``mtp.idx_scores``.
"""

from __future__ import annotations

from typing import Protocol

from localglm.arrays import AnyArray
from localglm.backends.base import Buffer, Cells


class Probe(Protocol):
    """Watches and replaces intermediates of one forward pass."""

    @property
    def is_watching(self) -> bool:
        """Whether values are recorded at all; optional work is skipped when they are not."""

    def record(self, name: str, value: Buffer) -> None:
        """Receive an intermediate; rows are the tokens of the running chunk."""

    def record_cells(self, name: str, cells: Cells) -> None:
        """Receive the cells each token of the running chunk attends."""

    def replacement(self, name: str, first: int, count: int) -> AnyArray | None:
        """Return rows [first, first + count) to use in place of the computed value, or None."""


class NoProbe:
    """Watches nothing and replaces nothing."""

    is_watching = False

    def record(self, name: str, value: Buffer) -> None:
        """Ignore the value."""

    def record_cells(self, name: str, cells: Cells) -> None:
        """Ignore the cells."""

    def replacement(self, name: str, first: int, count: int) -> AnyArray | None:  # noqa: ARG002
        """Replace nothing."""
        return None
