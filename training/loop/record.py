"""The log of a run: one line every few steps in two CSV files, and on the screen."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from training.loop.losses import WATCHED

_HEAD = ("step", "seconds", "tokens", "tokens_per_s", "rate", "length", *WATCHED,
         "grad_norm", "load_max", "load_min")  # fmt: skip


@dataclass(slots=True)
class Record:
    """Collects scalars on the device and writes their means; reading them waits for the device."""

    folder: Path
    kinds: Sequence[str]
    start: float = field(default_factory=time.monotonic)
    _rows: list[Tensor] = field(default_factory=list)
    _loads: Tensor | None = None
    _by_kind: dict[int, Tensor] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)
    _new_tokens: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        """Start both files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write("curves.csv", _HEAD, mode="w")
        self._write("kinds.csv", ("step", "length", "kind", "right", "documents"), mode="w")

    def _write(self, name: str, row: Sequence[object], mode: str = "a") -> None:
        with (self.folder / name).open(mode, newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(row)

    def add(self, watched: Tensor, norm: Tensor, loads: dict[int, Tensor], tokens: int) -> None:
        """Add a step."""
        self._rows.append(torch.cat([watched, norm.reshape(1)]))
        stacked = torch.stack(list(loads.values()))
        self._loads = stacked if self._loads is None else self._loads + stacked
        self.tokens += tokens
        self._new_tokens += tokens

    def add_kinds(self, length: int, counts: Tensor) -> None:
        """Add documents [kinds, 2] of rows of a length."""
        before = self._by_kind.get(length)
        self._by_kind[length] = counts if before is None else before + counts

    def flush(self, step: int, rate: float, length: int) -> None:
        """Write the means since the last call."""
        assert self._loads is not None
        mean = torch.stack(self._rows).mean(0).tolist()
        share = self._loads / self._loads.mean(1, keepdim=True)
        now = time.monotonic()
        speed = self._new_tokens / max(now - self._since, 1e-9)
        row = [step, round(now - self.start, 1), self.tokens, round(speed), f"{rate:.2e}", length,
               *(f"{x:.4f}" for x in mean), f"{share.max():.2f}", f"{share.min():.3f}"]  # fmt: skip
        self._write("curves.csv", row)
        print(" ".join(f"{k}={v}" for k, v in zip(_HEAD, row, strict=True)), flush=True)
        self._rows, self._loads, self._since, self._new_tokens = [], None, now, 0

    def flush_kinds(self, step: int) -> None:
        """Write the counts by kind and row length since the last call."""
        for length, counts in sorted(self._by_kind.items()):
            shown = []
            for kind, (right, asked) in zip(self.kinds, counts.tolist(), strict=True):
                if asked:
                    self._write("kinds.csv", (step, length, kind, int(right), int(asked)))
                    shown.append(f"{kind} {right / asked:.2f}")
            print(f"  [{length}] " + ", ".join(shown), flush=True)
        self._by_kind = {}
