"""From the data stream's packed rows to what the network takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from queue import Queue

import numpy as np
import torch
from torch import Tensor

from training.data.stream import Batch, StreamConfig, open_stream
from training.model.mla import Packing, visible_cells

_AHEAD = 3
_FEWEST_PROBES, _MOST_PROBES, _TOKENS_PER_PROBE = 16, 128, 32


@dataclass(frozen=True, slots=True)
class Prepared:
    """Flat tokens with the next token, and the weights of predicting the next and the one after.

    ``kind_of`` [t] maps a document's number to its kind.
    """

    ids: Tensor
    following: Tensor
    after: Tensor
    weight: Tensor
    draft_weight: Tensor
    kind_of: Tensor
    pack: Packing


def prepare(batch: Batch, device: torch.device, kinds: Sequence[str], *, selects: bool) -> Prepared:
    """Move a batch to the device and number its documents."""
    rows, length = batch.tokens.shape
    tokens = torch.from_numpy(batch.tokens).to(device, non_blocking=True).long()
    segment = torch.from_numpy(batch.segment).to(device, non_blocking=True).long()
    loss = torch.from_numpy(batch.loss).to(device, non_blocking=True)
    document = (segment + torch.arange(rows, device=device)[:, None] * length).reshape(-1)
    weight = _shifted(loss, 1, 0) * (_shifted(segment, 1, -1) == segment)
    draft_weight = _shifted(loss, 2, 0) * (_shifted(segment, 2, -1) == segment)
    pack = Packing(
        rows=rows, document=document, counted=torch.ones(rows * length, device=device),
        visible=visible_cells(document, rows), probes=_probes(weight, batch.number),
        selects=selects,
    )  # fmt: skip
    return Prepared(
        ids=tokens.reshape(-1),
        following=_shifted(tokens, 1, 0).reshape(-1),
        after=_shifted(tokens, 2, 0).reshape(-1),
        weight=weight.reshape(-1),
        draft_weight=draft_weight.reshape(-1),
        kind_of=_kind_of(batch, kinds).to(device, non_blocking=True),
        pack=pack,
    )


def _kind_of(batch: Batch, kinds: Sequence[str]) -> Tensor:
    rows, length = batch.tokens.shape
    number = {name: place for place, name in enumerate(kinds)}
    out = np.zeros((rows, length), np.int64)
    for row, names in zip(out, batch.kinds, strict=True):
        row[: len(names)] = [number[name] for name in names]
    return torch.from_numpy(out.reshape(-1))


def _probes(weight: Tensor, seed: int) -> Tensor:
    """Positions whose attention teaches the indexer: half where answers are written."""
    length = weight.shape[1]
    taught = (weight >= 1.0).float()
    chance = taught / taught.sum(1, keepdim=True).clamp(min=1.0) + 1.0 / length
    rng = torch.Generator(device=weight.device).manual_seed(seed)
    count = min(max(length // _TOKENS_PER_PROBE, _FEWEST_PROBES), _MOST_PROBES)
    return torch.multinomial(chance, count, replacement=True, generator=rng)


def _shifted(x: Tensor, by: int, fill: float) -> Tensor:
    """Column j + ``by`` in column j."""
    return torch.nn.functional.pad(x[:, by:], (0, by), value=fill)


class Feed:
    """A stream whose workers start at once and whose batches are read ahead by a thread."""

    def __init__(self, config: StreamConfig) -> None:
        self._queue: Queue[Batch | Exception] = Queue(_AHEAD)
        self._config = config
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._read, name="demo-feed", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        source: Iterator[Batch] = open_stream(self._config)
        try:
            for batch in source:
                self._queue.put(batch)
                if self._is_closed.is_set():
                    break
        except (RuntimeError, OSError) as error:
            self._queue.put(error)
        finally:
            source.close()  # type: ignore[attr-defined]

    def next(self) -> Batch:
        """Return the next batch."""
        item = self._queue.get(timeout=120)
        if isinstance(item, Exception):
            raise item
        return item

    def close(self) -> None:
        """End the workers."""
        self._is_closed.set()
        while self._thread.is_alive():
            if not self._queue.empty():
                self._queue.get()
            self._thread.join(0.05)
