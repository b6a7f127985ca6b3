"""Shape of a trainable model and the numbers every layer needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A glm5_next model. Letters as in the product: d width, h heads, k KDA head width, l latent,
    r query latent, i indexer width, g indexer heads, e experts, x used, f expert width."""  # noqa: D205, D209

    vocabulary: int = 3072
    width: int = 256
    layers: int = 12
    mla_every: int = 4
    leading_dense: int = 1
    dense_width: int = 512
    streams: int = 4
    sinkhorn_rounds: int = 20
    hyper_epsilon: float = 1e-6
    norm_epsilon: float = 1e-5
    layer_norm_epsilon: float = 1e-6
    heads: int = 4
    kda_width: int = 64
    taps: int = 4
    gate_lower_bound: float = -5.0
    query_latent: int = 128
    latent: int = 128
    key_width: int = 64
    value_width: int = 64
    indexer_heads: int = 4
    indexer_width: int = 64
    top_k: int = 512
    pool: int = 4
    experts: int = 32
    used: int = 4
    expert_width: int = 32
    shared_width: int = 128
    router_scale: float = 2.5
    limit: float = 10.0
    context_length: int = 16384

    @property
    def channels(self) -> int:
        """Width of each KDA stream."""
        return self.heads * self.kda_width

    @property
    def pools_kept(self) -> int:
        """Complete pools a query attends."""
        return self.top_k // self.pool

    def is_mla(self, layer: int) -> bool:
        """Whether a block uses latent attention; the draft block does."""
        return layer == self.layers or layer % self.mla_every == self.mla_every - 1

    def is_dense(self, layer: int) -> bool:
        """Whether a block has one feed-forward instead of experts."""
        return layer < self.leading_dense


DEMO = ModelConfig()
TINY = ModelConfig(
    vocabulary=3072, width=32, layers=4, dense_width=64, heads=2, kda_width=32, query_latent=32,
    latent=32, key_width=32, value_width=32, indexer_heads=2, indexer_width=32, top_k=32,
    experts=8, used=2, expert_width=32, shared_width=32, context_length=2048,
)  # fmt: skip
