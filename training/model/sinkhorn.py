"""Sinkhorn normalisation of the stream-mixing matrices, in float32 or wider.

On a GPU one kernel does all rounds (its gradient runs the rounds backwards from recorded sums);
elsewhere plain torch does, which is also what the kernel is checked against.
"""

from __future__ import annotations

import torch
from torch import Tensor

if torch.cuda.is_available():
    from training.model.sinkhorn_kernel import sinkhorn_fused


def sinkhorn_plain(logits: Tensor, rounds: int, epsilon: float) -> Tensor:
    """Turn logits [t, source, destination] into nearly doubly stochastic matrices.

    Math: softmax over destinations + epsilon, a column step, then rounds - 1 times rows, columns.
    """
    c = torch.softmax(logits, -1) + epsilon
    c = c / (c.sum(-2, keepdim=True) + epsilon)
    for _ in range(rounds - 1):
        c = c / (c.sum(-1, keepdim=True) + epsilon)
        c = c / (c.sum(-2, keepdim=True) + epsilon)
    return c


def sinkhorn(logits: Tensor, rounds: int, epsilon: float) -> Tensor:
    """Normalise with the fused kernel on a GPU and with ``sinkhorn_plain`` elsewhere."""
    if not logits.is_cuda:
        return sinkhorn_plain(logits, rounds, epsilon)
    return sinkhorn_fused(logits, rounds, epsilon)
