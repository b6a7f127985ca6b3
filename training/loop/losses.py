"""Losses and what is watched of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from training.loop.batches import Prepared
from training.model.network import Network, Output
from training.model.norms import project
from training.model.parameters import Params

Scores = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Shares:
    """Weights of the draft block's and the indexers' losses beside the trunk's."""

    draft: float = 0.3
    indexer: float = 0.1


@dataclass(frozen=True, slots=True)
class Terms:
    """Scalars of one batch on the device, ``best`` guesses [t]; ``total`` is differentiated.

    ``watched`` holds: loss of the next token, of the draft, divergence of the indexers, share of
    right tokens in answers, share of right drafts, attention mass the indexers keep.
    """

    total: Tensor
    watched: Tensor
    best: Tensor


WATCHED = ("next", "draft", "divergence", "right", "drafts_right", "recall")


def cross_entropy(
    hidden: Tensor, head: Tensor, target: Tensor, weight: Tensor, dtype: torch.dtype
) -> Scores:
    """Return the weighted mean of losses, the argmax of each row, and the mean over answers."""
    logits = project(hidden, head, dtype).float()
    loss = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    taught = (weight >= 1.0).float()
    mean = (loss * weight).sum() / weight.sum().clamp(min=1.0)
    answers = (loss.detach() * taught).sum() / taught.sum().clamp(min=1.0)
    return mean, logits.detach().argmax(-1), answers


def terms(
    net: Network, params: Params, batch: Prepared, shares: Shares,
    scored: Callable[..., Scores] = cross_entropy,
) -> tuple[Terms, Output]:  # fmt: skip
    """Run a batch. A draft counts as right when it equals the trunk's own next choice."""
    out = net.forward(params, batch.ids, batch.following, batch.pack)
    head = params["output.weight"]
    ahead, best, answers = scored(out.hidden, head, batch.following, batch.weight, net.dtype)
    drafted, guess, draft_answers = scored(
        out.draft_hidden, head, batch.after, batch.draft_weight, net.dtype
    )
    divergence = torch.stack(out.divergences).mean()
    taught, drafts = batch.weight >= 1.0, batch.draft_weight >= 1.0
    agree = guess == torch.nn.functional.pad(best[1:], (0, 1))
    watched = torch.stack([
        answers, draft_answers, divergence.detach(),
        ((best == batch.following) & taught).sum() / taught.sum().clamp(min=1),
        (agree & drafts).sum() / drafts.sum().clamp(min=1),
        torch.stack(out.recalls).mean(),
    ])  # fmt: skip
    total = ahead + shares.draft * drafted + shares.indexer * divergence
    return Terms(total, watched, best), out


@torch.no_grad()
def right_by_kind(best: Tensor, batch: Prepared, kinds: int) -> Tensor:
    """Count documents [kinds, 2]: all answers right to the last token, and all documents."""
    taught = batch.weight >= 1.0
    zeros = torch.zeros_like(batch.weight)
    wrong = zeros.scatter_add(0, batch.pack.document, ((best != batch.following) & taught).float())
    asked = zeros.scatter_add(0, batch.pack.document, taught.float()) > 0
    counts = torch.stack([(wrong == 0) & asked, asked], 1).float()
    return zeros.new_zeros(kinds, 2).index_add(0, batch.kind_of, counts)
