"""What crosses into C: numpy arrays and weights whose type, layout and shape have been checked."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from localglm.errors import MemoryShortError, ShapeError

if TYPE_CHECKING:
    from localglm.arrays import F32, I32, U8, AnyArray
    from localglm.backends.base import Buffer, Matrix, StoredMatrix
    from localglm.quant.types import StorageType

DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "i32": np.dtype(np.int32),
}
"""Types of buffers, by the names of the device contract."""

_F32, _F16, _I32 = DTYPES["f32"], DTYPES["f16"], DTYPES["i32"]


@dataclass(frozen=True, slots=True)
class CpuMatrix:
    """A weight in its storage type; ``data`` views the file's bytes, nothing is copied.

    The first row lies at ``address``.
    """

    name: str
    shape: tuple[int, ...]
    type: StorageType
    data: U8
    address: int

    @classmethod
    def of(cls, weight: StoredMatrix) -> CpuMatrix:
        """Check that the bytes fill the shape, and wrap them.

        Raises: ShapeError when they do not, or are not one run of bytes.
        """
        block = weight.type.value
        if len(weight.shape) not in {2, 3} or weight.shape[-1] % block.values:
            raise ShapeError(f"{weight.name}: {weight.shape} cannot be {weight.type.name}")
        needed = prod(weight.shape[:-1]) * weight.type.row_bytes(weight.shape[-1])
        if weight.data.nbytes != needed or not weight.data.flags.c_contiguous:
            raise ShapeError(
                f"{weight.name}: {weight.data.nbytes} bytes do not fill {weight.shape}",
                why=f"{weight.type.name} needs {needed} bytes in one run",
            )
        address = weight.data.ctypes.data
        return cls(weight.name, weight.shape, weight.type, weight.data, address)


def stored(matrix: Matrix, axes: int) -> CpuMatrix:
    """Return the matrix behind a handle of this device; it must have ``axes`` axes."""
    if not isinstance(matrix, CpuMatrix):
        raise ShapeError(f"a {type(matrix).__name__} is not a matrix of the CPU device")
    if len(matrix.shape) != axes:
        raise ShapeError(f"{matrix.name}: {matrix.shape} has not {axes} axes")
    return matrix


def array_of(buffer: Buffer) -> AnyArray:
    """Return the array behind a buffer of this device."""
    if not isinstance(buffer, np.ndarray):
        raise ShapeError(f"a {type(buffer).__name__} is not a buffer of the CPU device")
    return buffer


def _fits(array: AnyArray, shape: tuple[int | None, ...]) -> bool:
    have = array.shape
    if len(have) != len(shape) or not array.flags.c_contiguous:
        return False
    # A plain loop: this runs for every argument of every op of every token.
    for axis, want in enumerate(shape):  # noqa: SIM110
        if want is not None and want != have[axis]:
            return False
    return True


def floats(name: str, buffer: Buffer, *shape: int | None) -> F32:
    """Return a float32 array of this shape (None: any length above 0).

    Raises: ShapeError when it is another type or shape, not contiguous, or empty.
    """
    array = array_of(buffer)
    if array.dtype != _F32 or not _fits(array, shape) or not array.size:
        raise _misfit(name, array, "float32", shape)
    return array


def whole_floats(name: str, buffer: Buffer, like: AnyArray | None = None) -> F32:
    """Return a contiguous float32 array of any shape, or of the shape of ``like``."""
    array = array_of(buffer)
    fits = array.dtype == _F32 and array.flags.c_contiguous and array.ndim > 0 and array.size > 0
    if not fits or (like is not None and array.shape != like.shape):
        raise _misfit(name, array, "float32", (None,) if like is None else like.shape)
    return array


def indices(name: str, buffer: Buffer, *shape: int | None) -> I32:
    """Return an int32 array of this shape; it may be empty."""
    array = array_of(buffer)
    if array.dtype != _I32 or not _fits(array, shape):
        raise _misfit(name, array, "int32", shape)
    return array


def cache_rows(name: str, buffer: Buffer, width: int | None) -> AnyArray:
    """Return a float32 or float16 array [capacity, width]."""
    array = array_of(buffer)
    if array.dtype not in {_F32, _F16} or not _fits(array, (None, width)):
        raise _misfit(name, array, "float32 or float16", (None, width))
    return array


def is_half(array: AnyArray) -> bool:
    """Whether a cache holds half precision."""
    return array.dtype == _F16


def require(condition: bool, what: str, *arrays: AnyArray) -> None:
    """Raise ShapeError with ``what`` and the shapes of ``arrays`` unless ``condition`` holds."""
    if not condition:
        shapes = ", ".join(str(a.shape) for a in arrays)
        raise ShapeError(what, why=f"shapes: {shapes}" if shapes else "")


def memory_short(shape: tuple[int, ...], dtype: np.dtype[Any]) -> MemoryShortError:
    """Return the error for an array that could not be had."""
    return MemoryShortError(
        f"{prod(shape) * dtype.itemsize} bytes of memory could not be had",
        why=f"an array {shape} of {dtype} was needed and the system refused it",
        try_="close other programs, or use a smaller context or chunk",
    )


def _misfit(name: str, array: AnyArray, wanted: str, shape: tuple[int | None, ...]) -> ShapeError:
    axes = ", ".join("any" if n is None else str(n) for n in shape)
    order = "" if array.flags.c_contiguous else ", not contiguous"
    return ShapeError(
        f"{name}: {array.dtype} {array.shape}{order} was given",
        why=f"{wanted} [{axes}] is needed, contiguous and not empty",
    )
