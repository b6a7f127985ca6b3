"""Probe of a trace: records intermediates under the oracle's names and feeds recorded ones back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from localglm.arrays import AnyArray, Bool
from localglm.backends.base import Buffer, Cells, Device

_FED = ("attn_norm", "ffn_norm", "idx_selected", "router_ids")
_FED_DRAFT = ("mtp.input", "mtp.attn_out")


@dataclass(slots=True)
class TraceProbe:
    """Collects rows of every chunk when ``keep`` is set; feeds ``recorded`` when there is any."""

    device: Device
    keep: bool
    recorded: Mapping[str, AnyArray]
    chunks: dict[str, list[AnyArray]] = field(default_factory=dict)

    @property
    def is_watching(self) -> bool:
        """Whether every intermediate is wanted."""
        return self.keep

    def record(self, name: str, value: Buffer) -> None:
        """Copy the rows of one chunk to the host."""
        if self.keep:
            self._add(name, self.device.download(value))

    def record_cells(self, name: str, cells: Cells) -> None:
        """Keep the cells of one chunk as a boolean mask with as many columns as it needs."""
        if not self.keep:
            return
        index, count = self.device.download(cells.index), self.device.download(cells.count)
        width = int(index.max(initial=0)) + 1
        mask = np.zeros((len(count), width), bool)
        for row, (chosen, n) in enumerate(zip(index, count, strict=True)):
            mask[row, chosen[:n]] = True
        self._add(name, mask)

    def replacement(self, name: str, first: int, count: int) -> AnyArray | None:
        """Return the recorded rows of this chunk, or None where nothing is fed."""
        fed = name.rsplit(".", 1)[-1] in _FED or name in _FED_DRAFT
        rows = self.recorded.get(name) if fed else None
        if rows is None or first + count > len(rows):
            return None
        return rows[first : first + count]

    def _add(self, name: str, rows: AnyArray) -> None:
        self.chunks.setdefault(name, []).append(np.array(rows))

    def arrays(self, tokens: int, pool: int) -> dict[str, AnyArray]:
        """Join the chunks: rows are tokens; masks and pool scores get their full width."""
        out: dict[str, AnyArray] = {}
        for name, chunks in self.chunks.items():
            if name.endswith("idx_selected"):
                out[name] = _widened(chunks, tokens, False)
            elif name.endswith("idx_scores"):
                out[name] = _widened(chunks, tokens // pool, -np.inf)
            else:
                out[name] = np.concatenate(chunks)
        return out


def _widened(chunks: list[AnyArray], width: int, fill: float | bool) -> AnyArray | Bool:
    rows = []
    for chunk in chunks:
        wide = np.full((len(chunk), width), fill, chunk.dtype)
        wide[:, : chunk.shape[1]] = chunk[:, :width]
        rows.append(wide)
    return np.concatenate(rows)
