"""Norms in float32 or wider, and the product that every projection uses."""

from __future__ import annotations

import torch
from torch import Tensor


def wide(x: Tensor) -> Tensor:
    """Return ``x`` in float32, or unchanged when it is wider."""
    return x if x.dtype == torch.float64 else x.float()


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """weight * x / sqrt(mean(x^2) + epsilon), over the last axis."""
    x = wide(x)
    return weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Centre, scale to unit (biased) variance, then weight and bias."""
    x = wide(x)
    x = x - x.mean(-1, keepdim=True)
    return weight * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) + bias


def project(x: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Return weight x in the compute type: x [..., in], weight [out, in] -> [..., out]."""
    return torch.nn.functional.linear(x.to(dtype), weight.to(dtype))
