"""The stored conformance vectors are those of this source tree, small, and rich in edges."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from localglm.quant.types import Family, StorageType

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


def check(folder):
    command = [sys.executable, "-m", "build_tools.conformance", "--check", "--folder", folder]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )


def test_making_the_vectors_again_gives_the_same_bits():
    result = check(FOLDER)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_changed_bit_and_a_missing_file_are_found(tmp_path):
    for path in FOLDER.glob("*.npz"):
        shutil.copy(path, tmp_path)
    (tmp_path / "q8_0.npz").unlink()
    with np.load(tmp_path / "iq2_xxs.npz") as stored:
        arrays = dict(stored)
    arrays["y_768"][2, 1] ^= 1
    np.savez(tmp_path / "iq2_xxs.npz", **arrays)
    result = check(tmp_path)
    assert result.returncode == 1
    assert "iq2_xxs: y_768 differs" in result.stdout
    assert "q8_0.npz is missing" in result.stdout
    assert len(result.stdout.splitlines()) == 2


def test_the_vectors_stay_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.npz")) < 1_500_000


@pytest.mark.parametrize("kind", StorageType, ids=lambda kind: kind.name)
def test_every_type_has_ordinary_infinite_nan_and_zero_results(kind):
    with np.load(FOLDER / f"{kind.name.lower()}.npz") as stored:
        names = [n for n in stored.files if n.startswith("y_")]
        y = np.concatenate([stored[n].view(np.float32).ravel() for n in names])
    assert len(names) >= 3
    assert np.isnan(y).any()
    assert np.isinf(y).any()
    assert (y == 0).any()
    assert (np.isfinite(y) & (y != 0)).mean() > 0.3


def test_the_vectors_tell_apart_arithmetic_that_flushes_subnormals():
    with np.load(FOLDER / "activations.npz") as stored:
        faint = list(stored["names"]).index("faint")
        scale = stored["scale_256_2560"].view(np.float32)[faint]
    smallest_half = np.float32(2.0**-24)
    assert (scale * smallest_half > 0).all()
    assert (scale * smallest_half < 2.0**-126).all()
    for kind in StorageType:
        if kind.family is not Family.FLOAT:
            with np.load(FOLDER / f"{kind.name.lower()}.npz") as stored:
                y = stored["y_768" if kind.family is Family.SUPER else "y_160"]
            # Row 4 has the smallest subnormal in every scale; flushed, it would be zero.
            assert y.view(np.float32)[faint, 4] != 0
