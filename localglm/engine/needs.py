"""What a model and a conversation need of this computer, against what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.errors import MemoryShortError
from localglm.model.geometry import AttentionKind
from localglm.units import size_text

if TYPE_CHECKING:
    from localglm.model.geometry import Geometry


def cache_bytes(geometry: Geometry, context: int, cache_type: str) -> int:
    """Return the bytes that the caches of one full conversation hold."""
    layers = sum(layer.attention is AttentionKind.MLA for layer in geometry.layers)
    indexer = geometry.indexer
    values = context * geometry.mla.latent + context // indexer.pool * indexer.width
    return layers * values * (2 if cache_type == "f16" else 4)


def check_caches(needed: int, memory: int) -> None:
    """Refuse caches larger than the memory of this computer.

    Raises: MemoryShortError with both numbers.
    """
    if needed > memory:
        raise MemoryShortError(
            f"a conversation of that context needs {size_text(needed)} of memory for its caches",
            why=f"this computer has {size_text(memory)}, and the weights want some of it too",
            try_="use a smaller --context",
        )


def memory_notes(weights: int, memory: int) -> list[str]:
    """Say when the weights cannot stay in memory."""
    if weights <= memory:
        return []
    sizes = f"the weights take {size_text(weights)} and this computer has {size_text(memory)}"
    return [f"{sizes} of memory; they are read from the disk again and again, which is slow"]


def thread_notes(wanted: int | None, available: int) -> list[str]:
    """Say when more threads were asked for than can run at once; the number is obeyed."""
    if wanted is None or wanted <= available:
        return []
    reason = "more than that only wait for each other"
    return [f"{wanted} threads were asked for and {available} can run at once here; {reason}"]
