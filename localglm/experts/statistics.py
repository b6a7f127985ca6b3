"""What a home has done so far, as a snapshot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HomeStatistics:
    """Counts since the home was opened, and how it stands.

    ``hits``: experts wanted that were in memory; ``foreseen``: that a guess had begun to read;
    ``misses``: that were read because they were wanted. ``wasted_guesses``: read on a guess and
    replaced before they were wanted. ``read_seconds`` is time with a read outstanding,
    ``flight_seconds`` its integral over the reads in flight, ``waiting_seconds`` time in which
    nothing was computed because an expert had not arrived.
    """

    hits: int
    foreseen: int
    misses: int
    wasted_guesses: int
    bytes_read: int
    read_seconds: float
    flight_seconds: float
    waiting_seconds: float
    guess_rate: float | None
    is_guessing: bool
    slots: int
    slot_bytes: int
    is_direct: bool

    @property
    def hit_rate(self) -> float | None:
        """Share of the wanted experts that were in memory; None before the first."""
        wanted = self.hits + self.foreseen + self.misses
        return self.hits / wanted if wanted else None

    @property
    def read_rate(self) -> float | None:
        """Bytes per second while reading; None before the first read."""
        return self.bytes_read / self.read_seconds if self.read_seconds else None

    @property
    def reads_in_flight(self) -> float | None:
        """Average number of reads in flight while reading; None before the first."""
        return self.flight_seconds / self.read_seconds if self.read_seconds else None
