"""The linear-attention sublayer (KDA): short convolution, gates, delta rule, gated norm."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training.model.config import ModelConfig
from training.model.kda_chunk import chunk_terms
from training.model.norms import project, rms_norm, wide
from training.model.parameters import Params

L2_EPSILON = 1e-6


def short_conv(raw: Tensor, filters: Tensor, document: Tensor) -> Tensor:
    """Causal depthwise convolution and SiLU that never reads another document.

    Shapes: raw [t, c], filters [c, taps], document [t] -> [t, c]
    """
    t, taps = raw.shape[0], filters.shape[1]
    raw = wide(raw)
    mixed = raw * filters[:, -1]
    for back in range(1, taps):
        moved = torch.nn.functional.pad(raw, (0, 0, back, 0))[:t]
        other = torch.nn.functional.pad(document, (back, 0), value=-1)[:t]
        here = (other == document)[:, None]
        mixed = mixed + torch.where(here, moved, 0) * filters[:, taps - 1 - back]
    return mixed * torch.sigmoid(mixed)


def kda_terms(
    c: ModelConfig, p: Params, x: Tensor, document: Tensor, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """Return what ``chunk_terms`` returns for normalised x [t, d], then the output gate [t, h, k].

    All projections read x in one product; beta and both gates read x, not the convolution.
    """
    t, h, n = x.shape[0], c.heads, c.channels
    names = ("attn_q", "attn_k", "attn_v", "ssm_f_a", "ssm_g_a", "ssm_beta")
    weight = torch.cat([p[f"{name}.weight"] for name in names])
    rows = project(x, weight, dtype)
    raw, forget, gate, beta = rows.split([3 * n, c.kda_width, c.kda_width, h], -1)
    filters = torch.cat([p[f"ssm_conv1d_{s}.weight"] for s in "qkv"])
    q, k, v = short_conv(raw, filters, document).view(t, 3, h, -1).unbind(1)
    q = q * torch.rsqrt((q * q).sum(-1, keepdim=True) + L2_EPSILON) / math.sqrt(c.kda_width)
    k = k * torch.rsqrt((k * k).sum(-1, keepdim=True) + L2_EPSILON)
    forget = wide(project(forget, p["ssm_f_b.weight"], dtype)) + p["ssm_dt.bias"]
    rate = p["ssm_a_log"].exp()[:, None]
    decay = c.gate_lower_bound * torch.sigmoid(rate * forget.view(t, h, -1))
    gate = project(gate, p["ssm_g_b.weight"], dtype).view(t, h, -1)
    return *chunk_terms(q, k, v, decay, torch.sigmoid(wide(beta)), document), gate


def kda_output(c: ModelConfig, p: Params, out: Tensor, gate: Tensor, dtype: torch.dtype) -> Tensor:
    """Norm each head, gate and project: out, gate [t, h, k] -> [t, d]."""
    gated = rms_norm(out, p["ssm_norm.weight"], c.norm_epsilon) * torch.sigmoid(wide(gate))
    return project(gated.flatten(1), p["attn_output.weight"], dtype)
