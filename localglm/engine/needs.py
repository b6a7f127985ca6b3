"""What a conversation needs by the shape of the model alone, and what is said of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.model.geometry import AttentionKind
from localglm.settings.schema import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from localglm.model.geometry import Geometry

_TOKEN_BYTES = 120
"""One token of the context in Python: its number, and its place in about eleven lists of them."""

_TEXT_BYTES = 200
"""What the text of a token takes: kept with each place to go back to, and while it is made."""

PROCESS_GROWTH = 512 << 10
"""What the interpreter adds to itself from the first pass on (docs/measurements/memory.md)."""

_ROWS_OF_LOGITS = 16
"""Rows of scores at a time: one per place to go back to, and the sampler's work in float64."""


def cache_bytes(geometry: Geometry, context: int, cache_type: str) -> int:
    """Return the bytes that the caches of one full conversation hold."""
    layers = sum(layer.attention is AttentionKind.MLA for layer in geometry.layers)
    indexer = geometry.indexer
    values = context * geometry.mla.latent + max(1, context // indexer.pool) * indexer.width
    return layers * values * (2 if cache_type == "f16" else 4)


def state_bytes(geometry: Geometry) -> int:
    """Return the bytes of the linear layers' states: matrices and convolution windows."""
    layers = sum(layer.attention is AttentionKind.KDA for layer in geometry.layers)
    kda = geometry.kda
    windows = 3 * (kda.taps - 1) * kda.channels
    return layers * 4 * (kda.heads * kda.head_width**2 + windows)


def token_list_bytes(context: int, *, has_text: bool) -> int:
    """Return what the numbers and the text of a full conversation's tokens take."""
    return context * (_TOKEN_BYTES + (_TEXT_BYTES if has_text else 0))


def logit_bytes(geometry: Geometry) -> int:
    """Return what rows of scores over the vocabulary take."""
    return geometry.vocabulary * 4 * _ROWS_OF_LOGITS


def thread_notes(wanted: int | None, available: int) -> list[str]:
    """Say when more threads were asked for than can run at once; the number is obeyed."""
    if wanted is None or wanted <= available:
        return []
    reason = "more than that only wait for each other"
    return [f"{wanted} threads were asked for and {available} can run at once here; {reason}"]


def context_in_force(wanted: int | None, limit: int) -> int:
    """Return the tokens a conversation may hold: as asked for, or the default within the file's."""
    return min(limit, DEFAULT_CONTEXT) if wanted is None else wanted
