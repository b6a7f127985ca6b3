"""Feed-forward sublayers: dense SwiGLU, and routed experts beside a shared one.

The experts are so small that all of them are computed for every token as one wide SwiGLU, whose
channels are then weighted by the router (zero for experts not chosen). This is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from training.model.config import ModelConfig
from training.model.norms import project, wide
from training.model.parameters import ROUTER_BIAS, Params


def clamped(gate: Tensor, up: Tensor, limit: float) -> Tensor:
    """silu(min(gate, limit)) * clip(up, -limit, limit)."""
    gate, up = wide(gate).clamp(max=limit), wide(up).clamp(-limit, limit)
    return gate * torch.sigmoid(gate) * up


def swiglu(c: ModelConfig, p: Params, kind: str, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Run one feed-forward: x [t, d] -> [t, d]."""
    both = torch.cat([p[f"ffn_gate{kind}.weight"], p[f"ffn_up{kind}.weight"]])
    gate, up = project(x, both, dtype).chunk(2, -1)
    return project(clamped(gate, up, c.limit), p[f"ffn_down{kind}.weight"], dtype)


def route(c: ModelConfig, p: Params, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weight of every expert [t, e], zero where not chosen, and the choice [t, e]."""
    chance = torch.sigmoid(torch.nn.functional.linear(wide(x), p["ffn_gate_inp.weight"]))
    ids = (chance.detach() + p[ROUTER_BIAS]).topk(c.used, -1).indices
    chosen = torch.zeros_like(chance).scatter(-1, ids, 1.0)
    kept = chance * chosen
    return c.router_scale * kept / (kept.sum(-1, keepdim=True) + 1e-20), chosen


def moe(
    c: ModelConfig, p: Params, x: Tensor, counted: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Run the experts: x [t, d] -> [t, d], and how many counted [t] tokens chose each expert."""
    weights, chosen = route(c, p, x)
    both = torch.cat([p["ffn_gate_exps.weight"], p["ffn_up_exps.weight"]]).flatten(0, 1)
    gate, up = project(x, both, dtype).chunk(2, -1)
    inner = clamped(gate, up, c.limit).view(-1, c.experts, c.expert_width) * weights[..., None]
    down = p["ffn_down_exps.weight"].transpose(0, 1).flatten(1)
    routed = project(inner.flatten(1), down, dtype)
    load = (chosen * counted[:, None]).sum(0)
    return wide(routed) + wide(swiglu(c, p, "_shexp", x, dtype)), load
