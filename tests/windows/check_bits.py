"""The Windows library computes the bits of the Linux one: every number of a run, every set."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests import oracle_archive as oracle
from tests.windows.conftest import Windows, run_here, seen_by_windows

ALONE = ("logits", "gen_logits", "hidden")


@pytest.fixture
def ids(tmp_path: Path, name: str) -> Path:
    """The prompt of a fixture as a file for ``trace``."""
    path = tmp_path / "ids.json"
    path.write_text(json.dumps(oracle.Archive.load(name).arrays["prompt"].tolist()))
    return path


def traced_here(name: str, ids: Path, *flags: str) -> dict[str, np.ndarray]:
    out = ids.with_name("here.npz")
    arguments = ("--ids", str(ids), "--out", str(out), "--generate", "8", "--layers")
    run_here("trace", str(oracle.model_path(name)), *arguments, *flags)
    with np.load(out) as arrays:
        return dict(arrays)


def traced_there(windows: Windows, name: str, ids: Path, *flags: str) -> dict[str, np.ndarray]:
    out = ids.with_name("there.npz")
    names = ("--ids", seen_by_windows(ids), "--out", seen_by_windows(out))
    model = seen_by_windows(oracle.model_path(name))
    windows.run("trace", model, *names, "--generate", "8", "--layers", *flags)
    with np.load(out) as arrays:
        return dict(arrays)


def unequal(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> list[str]:
    """Return the names of arrays that differ in a bit, in shape or in type."""
    assert a.keys() == b.keys()
    return [
        name
        for name, array in a.items()
        if (array.dtype, array.shape) != (b[name].dtype, b[name].shape)
        or array.tobytes() != b[name].tobytes()
    ]


@pytest.mark.parametrize("isa", ["portable", "avx2"])
@pytest.mark.parametrize("name", oracle.NAMES)
def test_every_number_of_a_run_has_the_bits_of_linux(
    windows: Windows, ids: Path, name: str, isa: str
) -> None:
    here = traced_here(name, ids, "--isa", isa, "--threads", "2")
    there = traced_there(windows, name, ids, "--isa", isa, "--threads", "2")
    assert {*ALONE} <= there.keys()
    assert unequal(here, there) == []
    values = sum(array.size for array in there.values())
    print(f"{name} {isa}: {len(there)} arrays, {values} values equal in every bit")


@pytest.mark.parametrize("name", ["tiny-q8_0"])
def test_the_comparison_sees_another_arithmetic(windows: Windows, ids: Path, name: str) -> None:
    here = traced_here(name, ids)
    there = traced_there(windows, name, ids, "--exact-activations")
    assert {*ALONE} <= set(unequal(here, there))
