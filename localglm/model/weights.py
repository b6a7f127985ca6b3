"""Weights of a model as device handles, grouped the way the graph reads them.

``Matrix`` handles stay in their storage type; ``Buffer`` handles are float32 vectors or
small tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from localglm.backends.base import Buffer, Experts, Matrix


@dataclass(frozen=True, slots=True)
class HyperWeights:
    """One hyper-connection site: fn [s(2+s), s*d], base [s(2+s)], scale [3]."""

    fn: Matrix
    base: Buffer
    scale: Buffer


@dataclass(frozen=True, slots=True)
class KdaWeights:
    """Linear attention. Filters are [channels, taps]; decay_rate is exp(A_log) > 0 per head."""

    query: Matrix
    key: Matrix
    value: Matrix
    filter_query: Buffer
    filter_key: Buffer
    filter_value: Buffer
    decay_down: Matrix
    decay_up: Matrix
    decay_bias: Buffer
    decay_rate: Buffer
    beta: Matrix
    gate_down: Matrix
    gate_up: Matrix
    norm: Buffer
    output: Matrix


@dataclass(frozen=True, slots=True)
class IndexerWeights:
    """Pooled indexer. slot_bias is [pool, i]."""

    query: Matrix
    key: Matrix
    key_norm_weight: Buffer
    key_norm_bias: Buffer
    head_weight: Matrix
    gate: Matrix
    slot_bias: Buffer


@dataclass(frozen=True, slots=True)
class MlaWeights:
    """Latent attention. key_up is [h, l, key], value_up is [h, value, l]."""

    query_down: Matrix
    query_norm: Buffer
    query_up: Matrix
    latent_down: Matrix
    latent_norm: Buffer
    key_up: Matrix
    value_up: Matrix
    output: Matrix
    indexer: IndexerWeights


@dataclass(frozen=True, slots=True)
class FfnWeights:
    """A SwiGLU feed-forward: gate and up [f, d], down [d, f]."""

    gate: Matrix
    up: Matrix
    down: Matrix


@dataclass(frozen=True, slots=True)
class MoeWeights:
    """The router, its routed experts, and the shared expert."""

    router: Matrix
    bias: Buffer
    experts: Experts
    shared: FfnWeights


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One block. The hyper sites are None in the draft block, which has a plain residual."""

    attn_norm: Buffer
    ffn_norm: Buffer
    attention: KdaWeights | MlaWeights
    ffn: FfnWeights | MoeWeights
    hyper_attn: HyperWeights | None
    hyper_ffn: HyperWeights | None


@dataclass(frozen=True, slots=True)
class DraftWeights:
    """The draft block: an MLA block plus the projection that joins embedding and hidden state."""

    layer: LayerWeights
    join: Matrix
    embedding_norm: Buffer
    hidden_norm: Buffer
    output_norm: Buffer
    embedding: Matrix
    head: Matrix


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """A whole model."""

    embedding: Matrix
    output_norm: Buffer
    head: Matrix
    layers: tuple[LayerWeights, ...]
    draft: DraftWeights | None
