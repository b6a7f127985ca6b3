"""What reading experts from the drive will cost, estimated before the first token."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from localglm.engine.events import DiskRate
from localglm.experts.drive import drive_depth, measure
from localglm.units import size_text

_ASSUMED_DRIVE = 1.5e9
_ASSUMED_PER_THREAD = 6e9  # bytes of weights per second that a thread gets through
_ASSUMED_AT_MOST = 48e9  # and common memory delivers
_GLANCE = 0.3


@dataclass(frozen=True, slots=True)
class Drive:
    """How a drive likes to be read, and bytes per second; None where they were not measured."""

    depth: int
    rate: float | None
    notes: tuple[str, ...] = ()


def look_at_drive(path: Path, folder: Path | None) -> Drive:
    """Measure the drive of ``path``: two seconds the first time, then less than one.

    Raises: ModelFileError when the file cannot be opened.
    """
    known = drive_depth(path, folder)
    rates = known.rates or measure(path, (known.depth,), _GLANCE)
    return Drive(known.depth, rates.get(known.depth), known.notes)


def estimate(
    drive: Drive, *, expert_bytes: int, token_bytes: int, missing: float, threads: int
) -> DiskRate:
    """Estimate the rate of writing where a share ``missing`` of the experts is on the drive.

    ``expert_bytes`` and ``token_bytes`` are what one token reads: of experts, and of all weights.
    """
    read = round(expert_bytes * missing)
    rate = drive.rate or _ASSUMED_DRIVE
    computing = min(threads * _ASSUMED_PER_THREAD, _ASSUMED_AT_MOST)
    seconds = read / rate + token_bytes / computing
    how = "measured" if drive.rate is not None else "assumed"
    return DiskRate(
        tokens_per_s=1.0 / seconds,
        read_bytes=read,
        drive_bytes_per_s=rate,
        is_measured=drive.rate is not None,
        basis=f"{size_text(read)} from the drive per token at {size_text(round(rate))}/s ({how}),"
        " as if all experts were used alike; computing at"
        f" {computing / 1e9:.0f} GB/s of weights (assumed)",
    )
