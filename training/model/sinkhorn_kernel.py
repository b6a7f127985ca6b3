"""The Sinkhorn rounds of 4 x 4 matrices as two Triton kernels, forward and gradient.

A division by a sum is undone by a multiplication with it, so the gradient needs only the recorded
sums (39 x 4 numbers per matrix), which it computes again instead of keeping them for every site.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 64


@triton.jit
def _rounds(logits, out, sums, count, rounds, epsilon, RECORD: tl.constexpr, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    four = tl.arange(0, 4)
    at = token[:, None, None] * 16 + four[None, :, None] * 4 + four[None, None, :]
    inside = token[:, None, None] < count
    x = tl.load(logits + at, mask=inside, other=0.0)
    x = tl.exp(x - tl.max(x, axis=2, keep_dims=True))
    c = x / tl.sum(x, axis=2, keep_dims=True) + epsilon
    total = tl.sum(c, axis=1, keep_dims=True) + epsilon
    c = c / total
    column_at = token[:, None, None] * 4 + four[None, None, :]
    row_at = token[:, None, None] * 4 + four[None, :, None]
    if RECORD:
        tl.store(sums + column_at, total, mask=inside)
    for step in range(1, rounds):
        total = tl.sum(c, axis=2, keep_dims=True) + epsilon
        c = c / total
        if RECORD:
            tl.store(sums + (2 * step - 1) * count * 4 + row_at, total, mask=inside)
        total = tl.sum(c, axis=1, keep_dims=True) + epsilon
        c = c / total
        if RECORD:
            tl.store(sums + 2 * step * count * 4 + column_at, total, mask=inside)
    tl.store(out + at, c, mask=inside)


@triton.jit
def _gradient(final, sums, grad, out, count, rounds, epsilon, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202, N803
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    four = tl.arange(0, 4)
    at = token[:, None, None] * 16 + four[None, :, None] * 4 + four[None, None, :]
    inside = token[:, None, None] < count
    c = tl.load(final + at, mask=inside, other=0.0)
    g = tl.load(grad + at, mask=inside, other=0.0)
    column_at = token[:, None, None] * 4 + four[None, None, :]
    row_at = token[:, None, None] * 4 + four[None, :, None]
    for back in range(1, rounds):
        step = rounds - back
        total = tl.load(sums + 2 * step * count * 4 + column_at, mask=inside, other=1.0)
        g = (g - tl.sum(g * c, axis=1, keep_dims=True)) / total
        c = c * total
        total = tl.load(sums + (2 * step - 1) * count * 4 + row_at, mask=inside, other=1.0)
        g = (g - tl.sum(g * c, axis=2, keep_dims=True)) / total
        c = c * total
    total = tl.load(sums + column_at, mask=inside, other=1.0)
    g = (g - tl.sum(g * c, axis=1, keep_dims=True)) / total
    p = c * total - epsilon
    tl.store(out + at, p * (g - tl.sum(g * p, axis=2, keep_dims=True)), mask=inside)


@torch.library.custom_op("demo::sinkhorn", mutates_args=())
def sinkhorn_fused(logits: Tensor, rounds: int, epsilon: float) -> Tensor:
    """Normalise logits [t, 4, 4] float32; same result as ``sinkhorn_plain``."""
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    count = logits.shape[0]
    grid = (triton.cdiv(count, _BLOCK),)
    _rounds[grid](logits, out, out, count, rounds, epsilon, RECORD=False, BLOCK=_BLOCK)
    return out


@sinkhorn_fused.register_fake
def _(logits: Tensor, rounds: int, epsilon: float) -> Tensor:  # noqa: ARG001
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


@torch.library.custom_op("demo::sinkhorn_gradient", mutates_args=())
def sinkhorn_gradient(logits: Tensor, grad: Tensor, rounds: int, epsilon: float) -> Tensor:
    """Return the gradient to the logits for ``grad`` at the result."""
    logits, grad = logits.contiguous(), grad.contiguous()
    count = logits.shape[0]
    final, out = torch.empty_like(logits), torch.empty_like(logits)
    sums = logits.new_empty((2 * rounds - 1, count, 4))
    grid = (triton.cdiv(count, _BLOCK),)
    _rounds[grid](logits, final, sums, count, rounds, epsilon, RECORD=True, BLOCK=_BLOCK)
    _gradient[grid](final, sums, grad, out, count, rounds, epsilon, BLOCK=_BLOCK)
    return out


@sinkhorn_gradient.register_fake
def _(logits: Tensor, grad: Tensor, rounds: int, epsilon: float) -> Tensor:  # noqa: ARG001
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _setup(ctx, inputs, output):  # noqa: ANN001, ANN202, ARG001
    logits, ctx.rounds, ctx.epsilon = inputs
    ctx.save_for_backward(logits)


def _backward(ctx, grad):  # noqa: ANN001, ANN202
    return sinkhorn_gradient(ctx.saved_tensors[0], grad, ctx.rounds, ctx.epsilon), None, None


sinkhorn_fused.register_autograd(_backward, setup_context=_setup)
