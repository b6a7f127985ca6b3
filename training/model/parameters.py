"""Names, shapes and start values of the parameters.

A parameter has the name and shape of its tensor in the exported file, so export is a copy. Two
differ: ``ssm_a_log`` is exported as ``ssm_a`` = -exp(ssm_a_log), and ``exp_probs_b.bias`` is a
buffer that training moves without a gradient.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training.model.config import ModelConfig

Params = dict[str, Tensor]
ROUTER_BIAS = "exp_probs_b.bias"


def shapes(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return every parameter's shape by name."""
    out: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (c.vocabulary, c.width),
        "output_norm.weight": (c.width,),
        "output.weight": (c.vocabulary, c.width),
    }
    for layer in range(c.layers + 1):
        block = {"attn_norm.weight": (c.width,), "ffn_norm.weight": (c.width,)}
        block |= _mla(c) if c.is_mla(layer) else _kda(c)
        block |= _dense(c) if c.is_dense(layer) else _moe(c)
        block |= _hyper(c) if layer < c.layers else _draft(c)
        out |= {f"blk.{layer}.{name}": shape for name, shape in block.items()}
    return out


def _hyper(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    mixes = c.streams * (2 + c.streams)
    out: dict[str, tuple[int, ...]] = {}
    for site in ("attn", "ffn"):
        out[f"hc_{site}_fn.weight"] = (mixes, c.streams * c.width)
        out[f"hc_{site}_base.weight"] = (mixes,)
        out[f"hc_{site}_scale.weight"] = (3,)
    return out


def _kda(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    n, d, k = c.channels, c.width, c.kda_width
    return {
        "attn_q.weight": (n, d), "attn_k.weight": (n, d), "attn_v.weight": (n, d),
        "attn_output.weight": (d, n),
        "ssm_conv1d_q.weight": (n, c.taps), "ssm_conv1d_k.weight": (n, c.taps),
        "ssm_conv1d_v.weight": (n, c.taps),
        "ssm_f_a.weight": (k, d), "ssm_f_b.weight": (n, k),
        "ssm_g_a.weight": (k, d), "ssm_g_b.weight": (n, k),
        "ssm_beta.weight": (c.heads, d), "ssm_a_log": (c.heads,), "ssm_dt.bias": (n,),
        "ssm_norm.weight": (k,),
    }  # fmt: skip


def _mla(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    d, h, r, latent = c.width, c.heads, c.query_latent, c.latent
    return {
        "attn_q_a.weight": (r, d), "attn_q_a_norm.weight": (r,),
        "attn_q_b.weight": (h * c.key_width, r),
        "attn_kv_a_mqa.weight": (latent, d), "attn_kv_a_norm.weight": (latent,),
        "attn_k_b.weight": (h, latent, c.key_width),
        "attn_v_b.weight": (h, c.value_width, latent),
        "attn_output.weight": (d, h * c.value_width),
        "indexer.attn_q_b.weight": (c.indexer_heads * c.indexer_width, r),
        "indexer.attn_k.weight": (c.indexer_width, d),
        "indexer.k_norm.weight": (c.indexer_width,), "indexer.k_norm.bias": (c.indexer_width,),
        "indexer.proj.weight": (c.indexer_heads, d),
        "indexer_compressor_gate.weight": (c.indexer_width, d),
        "indexer_compressor_ape.weight": (c.pool, c.indexer_width),
    }  # fmt: skip


def _dense(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    up = (c.dense_width, c.width)
    return {"ffn_gate.weight": up, "ffn_up.weight": up, "ffn_down.weight": (c.width, c.dense_width)}


def _moe(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    e, f, d = c.experts, c.expert_width, c.width
    return {
        "ffn_gate_inp.weight": (e, d), ROUTER_BIAS: (e,),
        "ffn_gate_exps.weight": (e, f, d), "ffn_up_exps.weight": (e, f, d),
        "ffn_down_exps.weight": (e, d, f),
        "ffn_gate_shexp.weight": (c.shared_width, d), "ffn_up_shexp.weight": (c.shared_width, d),
        "ffn_down_shexp.weight": (d, c.shared_width),
    }  # fmt: skip


def _draft(c: ModelConfig) -> dict[str, tuple[int, ...]]:
    return {
        "nextn.eh_proj.weight": (c.width, 2 * c.width), "nextn.enorm.weight": (c.width,),
        "nextn.hnorm.weight": (c.width,), "nextn.shared_head_norm.weight": (c.width,),
    }  # fmt: skip


def initial(c: ModelConfig, seed: int) -> Params:
    """Return start values, the same for the same seed."""
    rng = torch.Generator().manual_seed(seed)
    return {name: _start(c, name, shape, rng) for name, shape in shapes(c).items()}


def _start(c: ModelConfig, name: str, shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    normal = torch.randn(shape, generator=rng)
    uniform = torch.rand(shape, generator=rng)
    if "hc_" in name:
        return _hyper_start(c, name, normal)
    if name.endswith("norm.weight"):
        return torch.ones(shape)
    if name.endswith((ROUTER_BIAS, "k_norm.bias", "ssm_a_log", "ape.weight")):
        return torch.zeros(shape)
    if name.endswith("ssm_dt.bias"):
        # forget gates from nearly closed to a half-life of a few tokens
        return -8.0 + 7.0 * uniform
    if "conv1d" in name:
        return uniform - 0.5
    if name == "token_embd.weight":
        return normal
    if name == "output.weight":
        return normal * 0.5 / math.sqrt(c.width)
    small = 0.2 if name.endswith(("attn_output.weight", "down.weight", "shexp.weight")) else 1.0
    return normal * small / math.sqrt(shape[-1])


def _hyper_start(c: ModelConfig, name: str, normal: Tensor) -> Tensor:
    """Each site reads mostly one stream, writes to all, and keeps the streams nearly apart."""
    s = c.streams
    if name.endswith("fn.weight"):
        return normal / math.sqrt(normal.shape[1])
    if name.endswith("scale.weight"):
        return torch.full((3,), 0.1)
    layer = int(name.split(".")[1])
    site = 2 * layer + ("ffn" in name)
    read = torch.full((s,), -1.0)
    read[site % s] = 1.0
    keep = 4.0 * torch.eye(s).reshape(-1)
    return torch.cat([read, 0.1 * normal[s : 2 * s], keep])
