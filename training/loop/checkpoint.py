"""Parameters in a few float16 files, none larger than a limit; no code in them is ever run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from training.model.parameters import Params

PART_BYTES = 15 * 2**20


def save_parts(folder: Path, params: Params, prefix: str = "weights") -> list[Path]:
    """Write ``prefix``-0.npz, -1.npz, ... and return them; older parts are overwritten.

    Values are float16, except vectors and the router bias, which are float32.
    """
    groups: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, value in params.items():
        array = value.detach().cpu().numpy().astype(np.float16 if value.dim() > 1 else np.float32)
        if size + array.nbytes > PART_BYTES:
            groups.append({})
            size = 0
        groups[-1][name] = array
        size += array.nbytes
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, group in enumerate(groups):
        paths.append(folder / f"{prefix}-{number}.npz")
        np.savez(paths[-1], **group)
    return paths


def load_parts(folder: Path, prefix: str = "weights") -> Params:
    """Read all parts of a folder in float32."""
    params: Params = {}
    for path in sorted(folder.glob(f"{prefix}-*.npz")):
        with np.load(path, allow_pickle=False) as part:
            params |= {name: torch.from_numpy(part[name].astype(np.float32)) for name in part.files}
    if not params:
        message = f"no {prefix}-*.npz in {folder}"
        raise FileNotFoundError(message)
    return params
