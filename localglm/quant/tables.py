"""The grid, sign and value tables of the IQ types, read from the archive the build makes.

Knows the archive's names; where the tables come from is ``build_tools/tables.py``.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from localglm.arrays import I8, U8
from localglm.errors import LocalGlmError

_ARCHIVE = Path(__file__).with_name("_tables.npz")


@dataclass(frozen=True, slots=True)
class Tables:
    """Read-only tables.

    Shapes: iq2*_grid [entries, 8] and iq3*_grid [entries, 4] unsigned magnitudes; iq1s_grid
    [2048, 8] in -1..1; ksigns_iq2xs [128], bit k set when value k of eight is negative;
    kvalues_iq4nl [16].
    """

    iq2xxs_grid: U8
    iq2xs_grid: U8
    iq2s_grid: U8
    iq1s_grid: I8
    iq3xxs_grid: U8
    iq3s_grid: U8
    ksigns_iq2xs: U8
    kvalues_iq4nl: I8


@functools.cache
def load() -> Tables:
    """Return the tables; the archive is read once per process.

    Raises: LocalGlmError when the archive is absent or lacks a table.
    """
    try:
        with np.load(_ARCHIVE, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in Tables.__dataclass_fields__}
    except (OSError, KeyError, ValueError) as error:
        raise LocalGlmError(
            f"the quantisation tables cannot be read: {_ARCHIVE}",
            why=str(error),
            try_="install the package again; in a source tree run: python build_tools/tables.py",
        ) from error
    for array in arrays.values():
        array.flags.writeable = False
    return Tables(**arrays)
