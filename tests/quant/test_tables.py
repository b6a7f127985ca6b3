"""The tables the build makes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from localglm.errors import LocalGlmError
from localglm.quant import tables

SCRIPT = Path(__file__).parents[2] / "build_tools" / "tables.py"


def run_script(root, *options):
    command = [sys.executable, SCRIPT, "--root", root, *options]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode


def test_the_build_writes_tables_that_pass_their_own_check(tmp_path):
    assert run_script(tmp_path, "--check") == 1
    assert run_script(tmp_path) == 0
    assert run_script(tmp_path, "--check") == 0
    header = tmp_path / "localglm/backends/cpu/csrc/generated/lg_tables.h"
    header.write_text(header.read_text().replace("0x0808080808080808ull", "0x0ull", 1))
    assert run_script(tmp_path, "--check") == 1


def test_the_installed_tables_are_whole_and_cannot_be_written_to():
    loaded = tables.load()
    assert loaded.iq2s_grid.shape == (1024, 8)
    assert loaded.iq3s_grid.shape == (512, 4)
    assert set(np.unique(loaded.iq1s_grid)) == {-1, 0, 1}
    # The eighth sign makes the number of negative values even.
    assert (np.bitwise_count(loaded.ksigns_iq2xs) % 2 == 0).all()
    assert (np.diff(loaded.kvalues_iq4nl.astype(int)) > 0).all()
    with pytest.raises(ValueError, match="read-only"):
        loaded.kvalues_iq4nl[0] = 0


def test_missing_tables_are_named_with_the_command_that_makes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ARCHIVE", tmp_path / "absent.npz")
    with pytest.raises(LocalGlmError, match=r"absent\.npz") as caught:
        tables.load.__wrapped__()
    assert "build_tools/tables.py" in caught.value.try_
