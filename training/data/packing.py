"""Rows of a fixed length, filled with whole conversations.

A conversation starts at a multiple of ``align`` and is never cut. What stands between its end and
the next start, and the rest of the row, is padding with no loss that belongs to the segment before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from training.data.conversation import EFFORTS, Conversation
from training.data.encode import Encoded, Writer
from training.data.kinds import BY_NAME, Kind
from training.data.pick import Pick, Split, Want
from training.data.topics import TOPICS
from training.data.vocabulary import PADDING, Encoder

_SMALLEST_ROOM = 48
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares; those of ``kinds`` and ``efforts`` are relative.

    ``long_share`` of the rows longer than ``short_row`` begin with a conversation that fills most
    of the row.
    """

    kinds: Mapping[str, float]
    efforts: Mapping[str, float]
    long_share: float = 0.85
    short_row: int = 512


@dataclass(slots=True)
class Row:
    """One row while it is filled."""

    length: int
    align: int
    ids: list[int] = field(default_factory=list)
    taught: bytearray = field(default_factory=bytearray)
    starts: list[int] = field(default_factory=list)
    padded: bytearray = field(default_factory=bytearray)
    kinds: list[str] = field(default_factory=list)

    @property
    def room(self) -> int:
        """Tokens left behind the next start."""
        return self.length - len(self.ids)

    def add(self, kind: str, encoded: Encoded) -> None:
        """Append a conversation and pad to the next start."""
        self.starts.append(len(self.ids))
        self.ids += encoded.ids
        self.taught += encoded.taught
        self.padded += bytes(len(encoded.ids))
        self.kinds.append(kind)
        self.pad(min(-len(self.ids) % self.align, self.length - len(self.ids)))

    def pad(self, count: int) -> None:
        """Append padding."""
        self.ids += [PADDING] * count
        self.taught += bytes(count)
        self.padded += b"\1" * count

    def segments(self) -> np.ndarray:
        """Return the number of the conversation every token belongs to, from 0."""
        marks = np.zeros(self.length, np.int32)
        marks[self.starts[1:]] = 1
        return np.cumsum(marks, dtype=np.int32)


class Packer:
    """Fills rows with training conversations."""

    def __init__(self, mix: Mix, align: int) -> None:
        self._mix = mix
        self._align = align
        self._encoder = Encoder()
        self._writer = Writer(self._encoder)
        self._kinds = [BY_NAME[name] for name in mix.kinds]
        self._shares = list(mix.kinds.values())
        self._long = [(kind, share) for kind, share in zip(self._kinds, self._shares, strict=True)
                      if kind.fills]  # fmt: skip

    def row(self, pick: Pick, length: int) -> Row:
        """Return a full row."""
        row = Row(length, self._align)
        if length > self._mix.short_row and self._long and pick.chance(self._mix.long_share):
            kinds, shares = zip(*self._long, strict=True)
            room = length if pick.chance(0.6) else pick.within(length // 3, length)
            self._place(row, pick, pick.weighted(kinds, shares), room)
        failures = 0
        while row.room >= _SMALLEST_ROOM and failures < _TRIES:
            kind = pick.weighted(self._kinds, self._shares)
            room = pick.within(_SMALLEST_ROOM, min(row.room, max(self._mix.short_row, length // 2)))
            failures += not self._place(row, pick, kind, room if kind.fills else row.room)
        row.pad(row.room)
        return row

    def _place(self, row: Row, pick: Pick, kind: Kind, room: int) -> bool:
        """Add one conversation that fits; says whether one was found."""
        for _ in range(_TRIES):
            made = self.conversation(pick, kind, room)
            encoded = self._writer.whole(made)
            if len(encoded.ids) <= row.room:
                row.add(kind.name, encoded)
                return True
            room = room * 9 // 10
        return False

    def conversation(self, pick: Pick, kind: Kind, room: int) -> Conversation:
        """Return a training conversation of a kind."""
        levels = self._mix.efforts
        effort = pick.weighted(EFFORTS, [levels[level] for level in EFFORTS])
        want = Want(Split.TRAIN, effort, pick.of(TOPICS), room, self._encoder.count)
        return kind.make(pick, want)
