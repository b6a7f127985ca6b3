"""The numbers that shape a model, and the axis letters used everywhere.

Axis letters: t tokens, s streams, d model width, h heads, k KDA head width (key axis), v value
width, l latent width, r query-latent width, i indexer width, g indexer heads, p pools, e experts,
x used experts, f feed-forward width, c channels or cells, n vocabulary rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AttentionKind(Enum):
    """Which attention a layer uses; read per layer from the file, never computed from the index."""

    KDA = "kda"
    MLA = "mla"


@dataclass(frozen=True, slots=True)
class HyperGeometry:
    """Hyper-connections (mHC): streams, Sinkhorn rounds, epsilon."""

    streams: int
    sinkhorn_rounds: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class KdaGeometry:
    """Linear attention: heads h, head width k (keys and values alike), taps, gate bound."""

    heads: int
    head_width: int
    taps: int
    gate_lower_bound: float

    @property
    def channels(self) -> int:
        """Width of each of the query, key and value projections."""
        return self.heads * self.head_width


@dataclass(frozen=True, slots=True)
class MlaGeometry:
    """Latent attention: heads, query latent r, latent l, key width and value width per head."""

    heads: int
    query_latent: int
    latent: int
    key_width: int
    value_width: int


@dataclass(frozen=True, slots=True)
class IndexerGeometry:
    """Pooled indexer: heads g, width i, cells kept, tokens per pool, open pool attended."""

    heads: int
    width: int
    top_k: int
    pool: int
    select_tail: bool

    @property
    def pools_kept(self) -> int:
        """Complete pools a query may attend."""
        return self.top_k // self.pool


@dataclass(frozen=True, slots=True)
class MoeGeometry:
    """Routed experts e, used per token x, expert width f, shared width, router scale."""

    experts: int
    used: int
    expert_width: int
    shared_width: int
    scale: float


@dataclass(frozen=True, slots=True)
class LayerGeometry:
    """One block: its attention, whether its feed-forward is dense, its SwiGLU limits or None."""

    index: int
    attention: AttentionKind
    dense: bool
    expert_limit: float | None
    shared_limit: float | None


@dataclass(frozen=True, slots=True)
class Geometry:
    """Everything about the shape of a model. Every value comes from the file."""

    width: int
    vocabulary: int
    context_length: int
    dense_width: int
    norm_epsilon: float
    layer_norm_epsilon: float
    hyper: HyperGeometry
    kda: KdaGeometry
    mla: MlaGeometry
    indexer: IndexerGeometry
    moe: MoeGeometry
    layers: tuple[LayerGeometry, ...]
    draft: LayerGeometry | None
