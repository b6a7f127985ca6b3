"""The oracle archives and how an array is held against them.

An archive stores an array whole, or under ``NAME@rows`` only the rows listed in its array ``rows``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "oracle"
NAMES = ("tiny-f32", "tiny-q8_0", "tiny-upstream", "tiny-clamp", "tiny-kquants")


def model_path(name: str) -> Path:
    """Return the file of a fixture (any shard opens its set)."""
    first = FOLDER / f"{name}.gguf"
    return first if first.exists() else FOLDER / f"{name}-00001-of-00003.gguf"


@dataclass(frozen=True)
class Archive:
    """Expected arrays of one fixture."""

    name: str
    arrays: dict[str, np.ndarray]
    rows: np.ndarray

    @classmethod
    def load(cls, name: str) -> Archive:
        with np.load(FOLDER / f"{name}.npz") as z:
            arrays = {k: z[k] for k in z.files if k != "rows"}
            return cls(name, arrays, z["rows"])

    def names(self) -> list[str]:
        """Every array but the margins, which describe the fixture."""
        return sorted({k.removesuffix("@rows") for k in self.arrays} - {"margins"})

    def want_and_got(self, name: str, got: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if name in self.arrays:
            return self.arrays[name], got
        return self.arrays[f"{name}@rows"], got[self.rows]


def error(want: np.ndarray, got: np.ndarray) -> float:
    """Largest difference over the largest expected value; infinite when shapes differ."""
    if want.shape != got.shape:
        return np.inf
    finite = np.isfinite(want)
    if not np.array_equal(finite, np.isfinite(got)):
        return np.inf
    w, g = np.where(finite, want, 0.0), np.where(finite, got, 0.0)
    return float(np.abs(w - g).max(initial=0.0) / (np.abs(w).max(initial=0.0) + 1e-30))


def row_errors(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Relative L2 error per row."""
    w, g = want.reshape(len(want), -1).astype(float), got.reshape(len(got), -1).astype(float)
    return np.linalg.norm(w - g, axis=1) / (np.linalg.norm(w, axis=1) + 1e-30)


def mismatches(archive: Archive, got: dict[str, np.ndarray]) -> list[str]:
    """List every array outside the float32 tolerances of the oracle."""
    out = []
    for name in archive.names():
        if name not in got:
            out.append(f"{name}: missing")
            continue
        want, mine = archive.want_and_got(name, got[name])
        if want.dtype.kind in "ib":
            if name.endswith("router_ids"):
                want, mine = np.sort(want, axis=1), np.sort(mine, axis=1)
            if not np.array_equal(want, mine):
                out.append(f"{name}: differs")
            continue
        bar = 2e-5 if name.endswith(("_comb", "idx_k")) else 2e-4
        found = error(want, mine)
        if not found <= bar:
            out.append(f"{name}: {found:.2e} > {bar:.0e}")
    return out
