"""Weights of the reference device: storage bytes, decoded to float64 piece by piece on demand.

A piece is a range of rows of one matrix of the stack. The most recently used pieces are kept up to
a byte budget, so a model of any size fits: what is dropped is decoded again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from localglm.errors import ShapeError
from localglm.quant.decode import decode_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localglm.arrays import F64, U8, AnyArray
    from localglm.backends.base import StoredMatrix
    from localglm.quant.types import StorageType

PIECE_BYTES = 32 << 20
"""Largest decoded piece, float64."""


@dataclass(frozen=True, slots=True)
class ReferenceMatrix:
    """A weight in its storage type; ``rows`` views the file's bytes: [stack * out, row bytes]."""

    name: str
    shape: tuple[int, ...]
    type: StorageType
    rows: U8

    @classmethod
    def of(cls, stored: StoredMatrix) -> ReferenceMatrix:
        """Check that the bytes fill the shape, and wrap them without a copy."""
        width = stored.shape[-1]
        n_rows = int(np.prod(stored.shape[:-1], dtype=np.int64))
        row_bytes = stored.type.row_bytes(width)
        whole_blocks = width % stored.type.value.values == 0
        if len(stored.shape) not in {2, 3} or not whole_blocks:
            raise ShapeError(f"{stored.name}: {stored.shape} cannot be {stored.type.name}")
        if stored.data.nbytes != n_rows * row_bytes:
            raise ShapeError(
                f"{stored.name}: {stored.data.nbytes} bytes do not fill {stored.shape}",
                why=f"{stored.type.name} needs {n_rows * row_bytes}",
            )
        rows = stored.data.reshape(n_rows, row_bytes)
        return cls(stored.name, stored.shape, stored.type, rows)


@dataclass(frozen=True, slots=True)
class ReferenceExperts:
    """Three stacks of the experts of a layer."""

    gate: ReferenceMatrix
    up: ReferenceMatrix
    down: ReferenceMatrix

    @property
    def resident(self) -> bool:
        """Whether saying which experts come next is of no use."""
        return True


class DecodedPieces:
    """Least recently used store of decoded pieces, at most ``budget_bytes`` of float64."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._kept: OrderedDict[tuple[int, int], tuple[ReferenceMatrix, F64]] = OrderedDict()
        self._kept_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return self._kept_bytes

    def gather(self, matrix: ReferenceMatrix, ids: AnyArray) -> F64:
        """Decode single rows [len(ids), width]; not kept."""
        return _decode(matrix, matrix.rows[ids])

    def whole(self, matrix: ReferenceMatrix, index: int | None = None) -> F64:
        """Return matrix ``index`` of a stack, or the only matrix, [out, in]."""
        return np.concatenate(list(self.pieces(matrix, index)))

    def pieces(self, matrix: ReferenceMatrix, index: int | None = None) -> Iterator[F64]:
        """Yield the pieces of one [out, in] matrix in row order."""
        out, width = matrix.shape[-2:]
        step = max(1, PIECE_BYTES // (8 * width))
        first = 0 if index is None else index * out
        for start in range(first, first + out, step):
            yield self._piece(matrix, start, min(start + step, first + out))

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()
        self._kept_bytes = 0

    def _piece(self, matrix: ReferenceMatrix, start: int, stop: int) -> F64:
        # The entry holds the matrix too: while it lives, its id cannot belong to another one.
        key = (id(matrix), start)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        decoded = _decode(matrix, matrix.rows[start:stop])
        self._kept[key] = (matrix, decoded)
        self._kept_bytes += decoded.nbytes
        while self._kept_bytes > self._budget_bytes:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._kept_bytes -= dropped.nbytes
        return decoded


@np.errstate(all="ignore")
def _decode(matrix: ReferenceMatrix, rows: U8) -> F64:
    return decode_rows(matrix.type, np.ascontiguousarray(rows)).astype(np.float64)
