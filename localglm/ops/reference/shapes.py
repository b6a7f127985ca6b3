"""Shape checks shared by the reference ops.

Every op refuses arrays that do not belong together and chunks without tokens: an empty chunk is
always a mistake of the
caller, never a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.errors import ShapeError

if TYPE_CHECKING:
    from localglm.arrays import F64, AnyArray


def need(condition: bool, what: str, *arrays: AnyArray) -> None:
    """Raise ShapeError with ``what`` and the shapes of ``arrays`` unless ``condition`` holds."""
    if condition:
        return
    shapes = ", ".join(str(a.shape) for a in arrays)
    raise ShapeError(what, why=f"shapes: {shapes}" if shapes else "")


def need_tokens(count: int, op: str) -> None:
    """Refuse a chunk without tokens."""
    if count < 1:
        raise ShapeError(f"{op}: empty chunk", why="a chunk holds at least one token")


def wide(array: AnyArray) -> F64:
    """Return ``array`` in float64; float64 arrays pass through without a copy."""
    return np.asarray(array, dtype=np.float64)
