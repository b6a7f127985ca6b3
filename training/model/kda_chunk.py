"""The gated delta rule over a long stream of packed documents, in parallel over chunks.

Inside a chunk a triangular system replaces the token-by-token rule; across chunks the state obeys
M' = P M + Q, one small product per chunk. A document's tokens see that document only: masks
by document number inside a chunk, P = 0 where nothing is carried over. Exponents are differences
of decay sums: to a point in the middle of a block of 32 (at most 16 tokens away, so within the
range of float32 either way), or to an earlier point.
"""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 64
BLOCK = 32


class UnitLowerInverse(torch.autograd.Function):
    """Inverse of identity + strictly lower triangular matrices [..., n, n]."""

    @staticmethod
    def forward(ctx, lower: Tensor) -> Tensor:  # noqa: ANN001
        """Solve against the identity."""
        eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
        inverse = torch.linalg.solve_triangular(
            lower, eye.expand_as(lower), upper=False, unitriangular=True
        )
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:  # noqa: ANN001
        """-T' grad T', of which only the strictly lower part is wanted."""
        (inverse,) = ctx.saved_tensors
        turned = inverse.mT
        return torch.tril(-(turned @ grad @ turned), -1)


def _blocked_inverse(lower: Tensor) -> Tensor:
    """Invert identity + lower [h, n, CHUNK, CHUNK] from its two diagonal blocks."""
    b = BLOCK
    diagonal = torch.stack([lower[..., :b, :b], lower[..., b:, b:]], 0)
    first, second = UnitLowerInverse.apply(diagonal).unbind(0)
    below = -(second @ lower[..., b:, :b] @ first)
    top = torch.cat([first, torch.zeros_like(first)], -1)
    return torch.cat([top, torch.cat([below, second], -1)], -2)


def _decayed_products(left: Tensor, key: Tensor, sums: Tensor) -> Tensor:
    """sum_c left_i,c key_j,c exp(G_i,c - G_j,c) for i >= j; entries above the diagonal are junk."""
    b = BLOCK
    blocks = []
    for part in (slice(0, b), slice(b, None)):
        g = sums[..., part, :]
        g = g - g[..., b // 2 - 1 : b // 2, :]
        blocks.append((left[..., part, :] * g.exp()) @ (key[..., part, :] * (-g).exp()).mT)
    edge = sums[..., b - 1 : b, :]
    late = left[..., b:, :] * (sums[..., b:, :] - edge).exp()
    early = key[..., :b, :] * (edge - sums[..., :b, :]).exp()
    top = torch.cat([blocks[0], torch.zeros_like(blocks[0])], -1)
    return torch.cat([top, torch.cat([late @ early.mT, blocks[1]], -1)], -2)


def chunk_terms(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, document: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return what each chunk does to the state before it.

    Shapes: query, key, value, decay [t, h, d], beta [t, h], document [t], t a multiple of CHUNK ->
            reads [h, n, C, d], local [h, n, C, d], passed [h, n, d, d], added [h, n, d, d]
    Math:   out = reads M + local; M after the chunk = passed M + added
    """
    c, (t, h, _) = CHUNK, query.shape
    n = t // c

    def chunks(x: Tensor) -> Tensor:
        return x.view(n, c, h, -1).permute(2, 0, 1, 3)

    query, key, value, decay, beta = map(chunks, (query, key, value, decay, beta))
    sums = decay.cumsum(2)
    doc = document.view(1, n, c)
    same = doc[..., :, None] == doc[..., None, :]
    before = torch.cat([torch.full_like(doc[:, :1, -1:], -1), doc[:, :-1, -1:]], 1)
    carried = (doc == before)[..., None].to(key.dtype)
    kept = (doc == doc[..., -1:])[..., None].to(key.dtype)
    lower = torch.ones(c, c, dtype=torch.bool, device=key.device).tril()

    products = torch.where(same & lower.tril(-1), _decayed_products(key, key, sums), 0)
    inverse = _blocked_inverse(beta * products)
    grown = sums.exp() * carried
    fresh = inverse @ (beta * value)
    stale = inverse @ (beta * key * grown)
    seen = torch.where(same & lower, _decayed_products(query, key, sums), 0)
    end = key * (sums[:, :, -1:] - sums).exp() * kept
    passed = torch.diag_embed(grown[:, :, -1]) - end.mT @ stale
    return query * grown - seen @ stale, seen @ fresh, passed, end.mT @ fresh


class States(torch.autograd.Function):
    """The state before each chunk of M' = passed M + added, from zero in every row of the batch.

    Shapes: passed, added [h * rows, n, d, d] -> [h * rows, n, d, d]; slices by chunk are views.
    """

    @staticmethod
    def forward(ctx, passed: Tensor, added: Tensor) -> Tensor:  # noqa: ANN001
        """Go through the chunks of all rows at once."""
        out = torch.empty_like(added)
        out[:, 0] = 0
        for i in range(passed.shape[1] - 1):
            torch.baddbmm(added[:, i], passed[:, i], out[:, i], out=out[:, i + 1])
        ctx.save_for_backward(passed, out)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN001
        """Go back through the chunks; ``later`` is the gradient at the state after each."""
        passed, out = ctx.saved_tensors
        grad = grad.contiguous()
        later = torch.empty_like(grad)
        last = passed.shape[1] - 1
        later[:, last] = 0
        for i in range(last, 0, -1):
            torch.baddbmm(grad[:, i], passed[:, i].mT, later[:, i], out=later[:, i - 1])
        return later @ out.mT, later


def states(passed: Tensor, added: Tensor, rows: int) -> Tensor:
    """Return the state before each chunk: passed, added [h, n, d, d] -> [h, n, d, d].

    Documents do not cross ``rows``, so the chunks of all rows are passed through side by side.
    """
    by_row = (x.contiguous().unflatten(1, (rows, -1)).flatten(0, 1) for x in (passed, added))
    return States.apply(*by_row).view_as(passed)


def outputs(reads: Tensor, local: Tensor, state: Tensor) -> Tensor:
    """Return what the tokens read: [h, n, C, d] and states [h, n, d, d] -> [t, h, d]."""
    return (reads @ state + local).permute(1, 2, 0, 3).flatten(0, 1)


def delta_rule(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, document: Tensor,
    rows: int = 1,
) -> Tensor:  # fmt: skip
    """Run the gated delta rule; arguments as in ``chunk_terms`` -> [t, h, d]."""
    reads, local, passed, added = chunk_terms(query, key, value, decay, beta, document)
    return outputs(reads, local, states(passed, added, rows))


def delta_rule_by_token(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor, document: Tensor
) -> Tensor:
    """Run the same rule token by token: what the chunk form is checked against."""
    t, h, d = query.shape
    state, rows = query.new_zeros(h, d, d), []
    for m in range(t):
        if m and document[m] != document[m - 1]:
            state = torch.zeros_like(state)
        state = decay[m].exp()[:, :, None] * state
        recalled = torch.einsum("hkv,hk->hv", state, key[m])
        delta = beta[m][:, None] * (value[m] - recalled)
        state = state + key[m][:, :, None] * delta[:, None]
        rows.append(torch.einsum("hkv,hk->hv", state, query[m]))
    return torch.stack(rows)
