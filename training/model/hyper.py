"""Hyper-connections (mHC): parallel residual streams [t, s, d] around every sublayer."""

from __future__ import annotations

import torch
from torch import Tensor

from training.model.config import ModelConfig
from training.model.norms import wide
from training.model.parameters import Params
from training.model.sinkhorn import sinkhorn


def hyper_pre(c: ModelConfig, p: Params, site: str, streams: Tensor) -> tuple[Tensor, ...]:
    """Collapse the streams for one site.

    Shapes: streams [t, s, d] -> input [t, d], post [t, s], comb [t, source, destination].
    """
    s = c.streams
    fn, base, scale = (p[f"hc_{site}_{part}.weight"] for part in ("fn", "base", "scale"))
    x = wide(streams)
    flat = x.flatten(1)
    mix = torch.nn.functional.linear(flat, fn)
    mix = mix * torch.rsqrt((flat * flat).mean(-1, keepdim=True) + c.norm_epsilon)
    pre = torch.sigmoid(mix[:, :s] * scale[0] + base[:s]) + c.hyper_epsilon
    post = 2.0 * torch.sigmoid(mix[:, s : 2 * s] * scale[1] + base[s : 2 * s])
    logits = (mix[:, 2 * s :] * scale[2] + base[2 * s :]).view(-1, s, s)
    comb = sinkhorn(logits, c.sinkhorn_rounds, c.hyper_epsilon)
    return (pre[:, :, None] * x).sum(1), post, comb


def hyper_post(y: Tensor, streams: Tensor, post: Tensor, comb: Tensor) -> Tensor:
    """Write a sublayer's output y [t, d] back: X'[j] = post[j] y + sum_s comb[s, j] X[s]."""
    x = wide(streams)
    mixed = (comb[:, :, :, None] * x[:, :, None, :]).sum(1)
    return (post[:, :, None] * wide(y)[:, None] + mixed).to(streams.dtype)
