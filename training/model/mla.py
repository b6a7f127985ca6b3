"""Latent attention (NoPE MLA) with the pooled indexer, over packed documents.

Documents start at multiples of the pool size, so pool j of a document is a pool of the stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from training.model.config import ModelConfig
from training.model.norms import layer_norm, project, rms_norm, wide
from training.model.parameters import Params


@dataclass(frozen=True, slots=True)
class Packing:
    """Where the documents of a batch lie. Rows hold whole documents.

    ``document`` [t] numbers documents; ``counted`` [t] is 1 where a token counts as expert load;
    ``visible`` [rows, 1, length, length] is what a token may see at all; ``probes`` [rows, m] are
    positions in a row whose attention teaches the indexer; ``selects`` puts the indexer's choice
    in force, ``exact_ties`` breaks ties at its cut as the product does.
    """

    rows: int
    document: Tensor
    counted: Tensor
    visible: Tensor
    probes: Tensor
    selects: bool
    exact_ties: bool = False

    @property
    def length(self) -> int:
        """Tokens per row."""
        return self.document.shape[0] // self.rows


def visible_cells(document: Tensor, rows: int) -> Tensor:
    """Causal mask inside documents: document [t] -> [rows, 1, length, length]."""
    doc = document.view(rows, -1)
    length = doc.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=doc.device).tril()
    return ((doc[:, :, None] == doc[:, None, :]) & causal)[:, None]


@dataclass(frozen=True, slots=True)
class IndexerTerms:
    """What the indexer compares, flat over the stream: query [t, g, i], weight [t, g],
    pools [t/p, i]."""  # noqa: D205, D209

    query: Tensor
    weight: Tensor
    pools: Tensor


def attention_terms(c: ModelConfig, p: Params, x: Tensor, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Project x [t, d] to query, key [t, h, k], value [t, h, v] and the indexer's three terms."""
    t = x.shape[0]
    rows = project(x, torch.cat([p["attn_q_a.weight"], p["attn_kv_a_mqa.weight"]]), dtype)
    low, latent = rows.split([c.query_latent, c.latent], -1)
    low = rms_norm(low, p["attn_q_a_norm.weight"], c.norm_epsilon)
    latent = rms_norm(latent, p["attn_kv_a_norm.weight"], c.norm_epsilon).to(dtype)
    query = project(low, p["attn_q_b.weight"], dtype).view(t, c.heads, -1)
    up_key = p["attn_k_b.weight"].transpose(1, 2).flatten(0, 1)
    key = project(latent, up_key, dtype).view(t, c.heads, -1)
    value = project(latent, p["attn_v_b.weight"].flatten(0, 1), dtype).view(t, c.heads, -1)
    return query, key, value, *_indexer_terms(c, p, x.detach(), low.detach(), dtype)


def _indexer_terms(
    c: ModelConfig, p: Params, x: Tensor, low: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Project without a gradient: the indexer learns from its own loss only."""
    names = ("indexer.attn_k", "indexer_compressor_gate", "indexer.proj")
    rows = project(x, torch.cat([p[f"{name}.weight"] for name in names]), dtype)
    key, gate, weight = rows.split([c.indexer_width, c.indexer_width, c.indexer_heads], -1)
    key = layer_norm(
        key, p["indexer.k_norm.weight"], p["indexer.k_norm.bias"], c.layer_norm_epsilon
    )
    slots = wide(gate).view(-1, c.pool, c.indexer_width) + p["indexer_compressor_ape.weight"]
    pools = (slots.softmax(1) * key.view(slots.shape)).sum(1)
    query = project(low, p["indexer.attn_q_b.weight"], dtype)
    return query.view(x.shape[0], c.indexer_heads, -1), wide(weight), pools.to(dtype)


def pool_scores(c: ModelConfig, query: Tensor, weight: Tensor, pools: Tensor) -> Tensor:
    """Score pools: query [b, m, g, i], weight [b, m, g], pools [b, P, i] -> [b, m, P]."""
    scores = weight.new_zeros(*weight.shape[:2], pools.shape[1])
    for head in range(c.indexer_heads):
        raw = wide(query[:, :, head] @ pools.mT)
        scores = scores + weight[..., head, None] * raw.relu()
    return scores / math.sqrt(c.indexer_width * c.indexer_heads)


def complete_pools(c: ModelConfig, pack: Packing, at: Tensor | None = None) -> Tensor:
    """Which pools of its own document a query has complete: [rows, m, P], m all or ``at``."""
    doc = pack.document.view(pack.rows, -1)
    ends = torch.arange(pack.length, device=doc.device).expand_as(doc)
    pool_doc, pool_end = doc[:, c.pool - 1 :: c.pool], ends[:, c.pool - 1 :: c.pool]
    if at is None:
        at = ends
    mine = doc.gather(1, at)
    return (pool_doc[:, None] == mine[:, :, None]) & (pool_end[:, None] <= at[:, :, None])


@torch.no_grad()
def selected_cells(c: ModelConfig, terms: IndexerTerms, pack: Packing) -> Tensor:
    """Mask of the cells attended [rows, 1, length, length]: best pools and the open pool."""
    b, p = pack.rows, c.pool
    ready = complete_pools(c, pack)
    scores = pool_scores(
        c, terms.query.unflatten(0, (b, -1)), terms.weight.unflatten(0, (b, -1)),
        terms.pools.unflatten(0, (b, -1)),
    ).masked_fill(~ready, -torch.inf)  # fmt: skip
    kept = min(c.pools_kept, scores.shape[-1])
    if pack.exact_ties:
        best = torch.sort(scores, dim=-1, descending=True, stable=True).indices[..., :kept]
    else:
        best = scores.topk(kept, -1, sorted=False).indices
    chosen = torch.zeros_like(ready).scatter(-1, best, True) & ready
    return _cells(chosen, ready, p) & pack.visible


def _cells(chosen: Tensor, ready: Tensor, p: int) -> Tensor:
    """Widen pools to cells; cells of pools not complete yet are the open pool or invisible."""
    return (chosen | ~ready).repeat_interleave(p, -1)[:, None]


def indexer_loss(
    c: ModelConfig, terms: IndexerTerms, query: Tensor, key: Tensor, pack: Packing
) -> tuple[Tensor, Tensor]:
    """Teach the indexer the attention it must not cut, at the probes of each row.

    Returns the mean divergence of its softmax from the attention mass per complete pool (summed
    over heads), and the mass that the best pools keep. Shapes: query, key [rows, length, h, k].
    """
    b, at = pack.rows, pack.probes
    ready = complete_pools(c, pack, at)
    with torch.no_grad():
        asked = query.gather(1, at[:, :, None, None].expand(-1, -1, *query.shape[2:]))
        logits = torch.einsum("bmhk,bthk->bmht", wide(asked), wide(key)) / math.sqrt(c.key_width)
        seen = pack.visible[:, 0].gather(1, at[:, :, None].expand(-1, -1, pack.length))
        mass = logits.masked_fill(~seen[:, :, None], -torch.inf).softmax(-1).sum(2)
        mass = mass.unflatten(-1, (-1, c.pool)).sum(-1) * ready
        used = ready.any(-1)
        mass = mass / mass.sum(-1, keepdim=True).clamp(min=1e-9)
    scores = pool_scores(
        c, _taken(terms.query, b, at), _taken(terms.weight, b, at),
        terms.pools.unflatten(0, (b, -1)),
    )  # fmt: skip
    logs = scores.masked_fill(~ready, -1e9).log_softmax(-1)
    divergence = (mass * (mass.clamp(min=1e-9).log() - logs) * ready).sum(-1)
    with torch.no_grad():
        best = logs.topk(min(c.pools_kept, logs.shape[-1]), -1).indices
        binds = used & (ready.sum(-1) > c.pools_kept)
        recall = (mass.gather(-1, best).sum(-1) * binds).sum() / binds.sum().clamp(min=1)
    return (divergence * used).sum() / used.sum().clamp(min=1), recall


def _taken(x: Tensor, rows: int, at: Tensor) -> Tensor:
    """Rows ``at`` [rows, m] of x [t, ...]."""
    x = x.unflatten(0, (rows, -1))
    index = at.view(*at.shape, *(1,) * (x.dim() - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, index)


def attend(
    c: ModelConfig, terms: tuple[Tensor, ...], pack: Packing
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend and teach the indexer.

    ``terms`` as ``attention_terms`` returns them -> values [t, h * v], divergence, recall.
    """
    query, key, value = (x.unflatten(0, (pack.rows, -1)) for x in terms[:3])
    indexer = IndexerTerms(*terms[3:])
    mask = selected_cells(c, indexer, pack) if pack.selects else pack.visible
    out = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), attn_mask=mask,
        scale=1.0 / math.sqrt(c.key_width),
    )  # fmt: skip
    divergence, recall = indexer_loss(c, indexer, query, key, pack)
    return out.transpose(1, 2).reshape(pack.document.shape[0], -1), divergence, recall
