"""The tensors a geometry asks for: names, shapes and roles.

Source: section 10 of the model specification. Shapes are in numpy order (outermost first).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from localglm.model.geometry import AttentionKind, Geometry, LayerGeometry


class Role(Enum):
    """What a tensor is for, as ``inspect`` sums them up."""

    EMBEDDING = "embedding"
    HEAD = "output head"
    NORM = "norms"
    HYPER = "hyper-connections"
    KDA = "linear attention"
    MLA = "latent attention"
    INDEXER = "indexer"
    DENSE = "dense feed-forward"
    ROUTER = "router"
    EXPERT_GATE_UP = "experts, gate and up"
    EXPERT_DOWN = "experts, down"
    SHARED = "shared expert"
    DRAFT = "draft block"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor the model needs, or may have (``optional``); ``other`` is a second name for it."""

    name: str
    shape: tuple[int, ...]
    role: Role
    optional: bool = False
    other: str | None = None


def expected_tensors(geometry: Geometry) -> list[Expected]:
    """List the tensors of the trunk."""
    g = geometry
    listed = [
        Expected("token_embd.weight", (g.vocabulary, g.width), Role.EMBEDDING),
        Expected("output_norm.weight", (g.width,), Role.NORM),
        Expected("output.weight", (g.vocabulary, g.width), Role.HEAD, optional=True),
    ]
    for layer in g.layers:
        listed += _block(g, layer) + _hyper(g, layer.index)
    return listed


def expected_draft_tensors(geometry: Geometry) -> list[Expected]:
    """List the tensors of the draft block; nothing when the geometry has none."""
    g, layer = geometry, geometry.draft
    if layer is None:
        return []
    at = f"blk.{layer.index}.nextn."
    return [
        *_block(g, layer),
        Expected(f"{at}eh_proj.weight", (g.width, 2 * g.width), Role.DRAFT),
        Expected(f"{at}enorm.weight", (g.width,), Role.DRAFT),
        Expected(f"{at}hnorm.weight", (g.width,), Role.DRAFT),
        Expected(f"{at}shared_head_norm.weight", (g.width,), Role.DRAFT),
        Expected(f"{at}embed_tokens.weight", (g.vocabulary, g.width), Role.DRAFT, optional=True),
        Expected(
            f"{at}shared_head_head.weight", (g.vocabulary, g.width), Role.DRAFT, optional=True
        ),
    ]


def _block(g: Geometry, layer: LayerGeometry) -> list[Expected]:
    at = f"blk.{layer.index}."
    norms = [
        Expected(f"{at}attn_norm.weight", (g.width,), Role.NORM),
        Expected(f"{at}ffn_norm.weight", (g.width,), Role.NORM),
    ]
    is_kda = layer.attention is AttentionKind.KDA
    attention = _kda(g, at) if is_kda else [*_mla(g, at), *_indexer(g, at)]
    return norms + attention + (_dense(g, at) if layer.dense else _moe(g, at))


def _hyper(g: Geometry, index: int) -> list[Expected]:
    streams = g.hyper.streams
    mixes = streams * (2 + streams)
    listed = []
    for site in ("attn", "ffn"):
        at = f"blk.{index}.hc_{site}_"
        listed += [
            Expected(f"{at}fn.weight", (mixes, streams * g.width), Role.HYPER),
            Expected(f"{at}base.weight", (mixes,), Role.HYPER),
            Expected(f"{at}scale.weight", (3,), Role.HYPER),
        ]
    return listed


def _kda(g: Geometry, at: str) -> list[Expected]:
    channels, width, rank = g.kda.channels, g.width, g.kda.head_width
    shapes: dict[str, tuple[int, ...]] = {
        "attn_q.weight": (channels, width),
        "attn_k.weight": (channels, width),
        "attn_v.weight": (channels, width),
        "attn_output.weight": (width, channels),
        "ssm_conv1d_q.weight": (channels, g.kda.taps),
        "ssm_conv1d_k.weight": (channels, g.kda.taps),
        "ssm_conv1d_v.weight": (channels, g.kda.taps),
        "ssm_f_a.weight": (rank, width),
        "ssm_f_b.weight": (channels, rank),
        "ssm_g_a.weight": (rank, width),
        "ssm_g_b.weight": (channels, rank),
        "ssm_beta.weight": (g.kda.heads, width),
        "ssm_a": (g.kda.heads,),
        "ssm_dt.bias": (channels,),
        "ssm_norm.weight": (rank,),
    }
    return [Expected(at + name, shape, Role.KDA) for name, shape in shapes.items()]


def _mla(g: Geometry, at: str) -> list[Expected]:
    mla, width = g.mla, g.width
    shapes: dict[str, tuple[int, ...]] = {
        "attn_q_a.weight": (mla.query_latent, width),
        "attn_q_a_norm.weight": (mla.query_latent,),
        "attn_q_b.weight": (mla.heads * mla.key_width, mla.query_latent),
        "attn_kv_a_mqa.weight": (mla.latent, width),
        "attn_kv_a_norm.weight": (mla.latent,),
        "attn_k_b.weight": (mla.heads, mla.latent, mla.key_width),
        "attn_v_b.weight": (mla.heads, mla.value_width, mla.latent),
        "attn_output.weight": (width, mla.heads * mla.value_width),
    }
    return [Expected(at + name, shape, Role.MLA) for name, shape in shapes.items()]


def _indexer(g: Geometry, at: str) -> list[Expected]:
    indexer, width = g.indexer, g.width
    shapes: dict[str, tuple[int, ...]] = {
        "indexer.attn_q_b.weight": (indexer.heads * indexer.width, g.mla.query_latent),
        "indexer.attn_k.weight": (indexer.width, width),
        "indexer.k_norm.weight": (indexer.width,),
        "indexer.k_norm.bias": (indexer.width,),
        "indexer.proj.weight": (indexer.heads, width),
    }
    listed = [Expected(at + name, shape, Role.INDEXER) for name, shape in shapes.items()]
    compressor = (
        ("gate", (indexer.width, width)),
        ("ape", (indexer.pool, indexer.width)),
    )
    return listed + [
        Expected(
            f"{at}indexer_compressor_{part}.weight",
            shape,
            Role.INDEXER,
            other=f"{at}indexer.kpool_{part}.weight",
        )
        for part, shape in compressor
    ]


def _dense(g: Geometry, at: str) -> list[Expected]:
    return [
        Expected(f"{at}ffn_gate.weight", (g.dense_width, g.width), Role.DENSE),
        Expected(f"{at}ffn_up.weight", (g.dense_width, g.width), Role.DENSE),
        Expected(f"{at}ffn_down.weight", (g.width, g.dense_width), Role.DENSE),
    ]


def _moe(g: Geometry, at: str) -> list[Expected]:
    moe, width = g.moe, g.width
    up, down = (moe.expert_width, width), (width, moe.expert_width)
    return [
        Expected(f"{at}ffn_gate_inp.weight", (moe.experts, width), Role.ROUTER),
        Expected(f"{at}exp_probs_b.bias", (moe.experts,), Role.ROUTER),
        Expected(f"{at}ffn_gate_exps.weight", (moe.experts, *up), Role.EXPERT_GATE_UP),
        Expected(f"{at}ffn_up_exps.weight", (moe.experts, *up), Role.EXPERT_GATE_UP),
        Expected(f"{at}ffn_down_exps.weight", (moe.experts, *down), Role.EXPERT_DOWN),
        Expected(f"{at}ffn_gate_shexp.weight", (moe.shared_width, width), Role.SHARED),
        Expected(f"{at}ffn_up_shexp.weight", (moe.shared_width, width), Role.SHARED),
        Expected(f"{at}ffn_down_shexp.weight", (width, moe.shared_width), Role.SHARED),
    ]
