"""Recurrence inputs of the tokens since a mark, so that some of them can be taken back.

KDA matrices cannot be rewound. The journal keeps the snapshot of the mark and, per layer, the small
rows that drove the state; taking back tokens reloads the snapshot and runs the recurrences over the
rows that stay. They are exactly the rows of the first run, so the result is the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localglm.backends.base import Buffer, Device
from localglm.model.layer_state import KdaState, MlaState
from localglm.model.runs import Triple, conv_scan

if TYPE_CHECKING:
    from localglm.model.state import Snapshot


@dataclass(frozen=True, slots=True)
class KdaRows:
    """What a chunk fed to a KDA layer: raw rows [t, c], log decay [t, h, k], beta [t, h].

    And the filters.
    """

    query: Buffer
    key: Buffer
    value: Buffer
    decay: Buffer
    beta: Buffer
    filters: tuple[Buffer, Buffer, Buffer]

    @property
    def count(self) -> int:
        """Tokens in the chunk."""
        return self.beta.shape[0]

    @property
    def raw(self) -> Triple:
        """Query, key and value rows."""
        return self.query, self.key, self.value


@dataclass(frozen=True, slots=True)
class MlaRows:
    """What a chunk fed to an MLA layer: latents [t, l], indexer keys and gates [t, i].

    Slot bias.
    """

    latents: Buffer
    keys: Buffer
    gates: Buffer
    slot_bias: Buffer

    @property
    def count(self) -> int:
        """Tokens in the chunk."""
        return self.keys.shape[0]


@dataclass(slots=True)
class Journal:
    """The mark and the rows per layer index, oldest chunk first."""

    base: Snapshot
    rows: dict[int, list[KdaRows | MlaRows]] = field(default_factory=dict)

    def add(self, layer: int, rows: KdaRows | MlaRows) -> None:
        """Record what one chunk fed to a layer."""
        self.rows.setdefault(layer, []).append(rows)

    def replay(self, device: Device, layers: Sequence[KdaState | MlaState], tokens: int) -> None:
        """Bring ``layers``, which stand at the mark, forward by ``tokens``; forget later rows."""
        for index, state in enumerate(layers):
            kept = _first(device, self.rows.get(index, []), tokens)
            self.rows[index] = kept
            for rows in kept:
                if isinstance(rows, KdaRows) and isinstance(state, KdaState):
                    scan_kda(device, state, rows)
                elif isinstance(rows, MlaRows) and isinstance(state, MlaState):
                    state.latents.append(rows.latents)
                    state.append_indexer(rows.keys, rows.gates, rows.slot_bias)


def scan_kda(device: Device, state: KdaState, rows: KdaRows) -> Buffer:
    """Advance a KDA state over a chunk; return the output of the scan [t, h, v]."""
    return conv_scan(
        device, rows.raw, rows.filters, state.windows, rows.decay, rows.beta, state.matrix
    )


def _first(device: Device, chunks: list[KdaRows | MlaRows], tokens: int) -> list[KdaRows | MlaRows]:
    out: list[KdaRows | MlaRows] = []
    for chunk in chunks:
        take = min(chunk.count, tokens)
        if take == 0:
            break
        out.append(chunk if take == chunk.count else _cut(device, chunk, take))
        tokens -= take
    return out


def _cut(device: Device, chunk: KdaRows | MlaRows, take: int) -> KdaRows | MlaRows:
    def cut(buffer: Buffer) -> Buffer:
        return device.rows(buffer, 0, take)

    if isinstance(chunk, KdaRows):
        return KdaRows(
            cut(chunk.query),
            cut(chunk.key),
            cut(chunk.value),
            cut(chunk.decay),
            cut(chunk.beta),
            chunk.filters,
        )
    return MlaRows(cut(chunk.latents), cut(chunk.keys), cut(chunk.gates), chunk.slot_bias)
