"""From the data stream's packed rows to what the network takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training.data.stream import Batch
from training.model.mla import Packing, visible_cells


@dataclass(frozen=True, slots=True)
class Prepared:
    """Flat tokens with the next token, and the weights of predicting the next and the one after."""

    ids: Tensor
    following: Tensor
    after: Tensor
    weight: Tensor
    draft_weight: Tensor
    pack: Packing


def prepare(
    batch: Batch, device: torch.device, *, probes: int, selects: bool, exact_ties: bool = False
) -> Prepared:
    """Move a batch to the device and number its documents.

    ``probes``: positions per row whose attention teaches the indexer, in the later part of
    documents where there is something to choose.
    """
    rows, length = batch.tokens.shape
    tokens = torch.from_numpy(batch.tokens).to(device, non_blocking=True).long()
    segment = torch.from_numpy(batch.segment).to(device, non_blocking=True).long()
    loss = torch.from_numpy(batch.loss).to(device, non_blocking=True)
    document = (segment + torch.arange(rows, device=device)[:, None] * length).reshape(-1)
    rng = torch.Generator().manual_seed(batch.number)
    at = torch.rand(rows, probes, generator=rng).sqrt() * length
    at = at.long().clamp(max=length - 1).to(device)
    same_next = _shifted(segment, 1, -1) == segment
    same_after = _shifted(segment, 2, -1) == segment
    index = torch.arange(rows * length, device=device)
    first = torch.nn.functional.pad(document[1:] != document[:-1], (1, 0), value=True)
    start = torch.cummax(torch.where(first, index, 0), 0).values
    pack = Packing(
        rows=rows, document=document, position=index - start,
        counted=torch.ones(rows * length, device=device),
        visible=visible_cells(document, rows), probes=at, selects=selects, exact_ties=exact_ties,
    )  # fmt: skip
    return Prepared(
        ids=tokens.reshape(-1),
        following=_shifted(tokens, 1, 0).reshape(-1),
        after=_shifted(tokens, 2, 0).reshape(-1),
        weight=(_shifted(loss, 1, 0) * same_next).reshape(-1),
        draft_weight=(_shifted(loss, 2, 0) * same_after).reshape(-1),
        pack=pack,
    )


def _shifted(x: Tensor, by: int, fill: float) -> Tensor:
    """Column j + ``by`` in column j."""
    return torch.nn.functional.pad(x[:, by:], (0, by), value=fill)
