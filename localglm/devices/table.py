"""Which chips which back end has kernels for, what runtime they need and what to do without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["cuda", "hip", "wgpu", "cpu", "reference"]

BACKENDS: tuple[Backend, ...] = ("cuda", "hip", "wgpu", "cpu", "reference")
"""Every back end of the product by name, whether or not this version carries it."""


@dataclass(frozen=True, slots=True)
class Row:
    """Chips of one back end that need the same runtime.

    ``minimum`` is the oldest CUDA or HIP version whose driver loads our kernels for these chips.
    """

    architectures: tuple[str, ...]
    backend: Backend
    minimum: tuple[int, int]
    driver: str
    remedy: str


_NVIDIA = "install a display driver from NVIDIA"
_ROCM = "install ROCm, or torch for ROCm: pip install 'localglm[hip]'"

# PTX 7.0, which serves the first row, came with CUDA 11.0; Hopper and Ada with 11.8; Blackwell with
# 12.8. Code objects of version 5 are read from ROCm 6.0 on; later chips need the named release.
TABLE = (
    Row(("sm_61", "sm_70", "sm_75", "sm_80", "sm_86"), "cuda", (11, 0),
        "450.36 on Linux, 451.22 on Windows", _NVIDIA),
    Row(("sm_89", "sm_90"), "cuda", (11, 8), "520.61 on Linux, 522.06 on Windows", _NVIDIA),
    Row(("sm_100", "sm_103", "sm_120", "sm_121"), "cuda", (12, 8),
        "570.26 on Linux, 570.65 on Windows", _NVIDIA),
    Row(("gfx906", "gfx908", "gfx90a", "gfx942"), "hip", (6, 0), "ROCm 6.0", _ROCM),
    Row(("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"), "hip",
        (6, 0), "ROCm 6.0", _ROCM),
    Row(("gfx1100", "gfx1101", "gfx1102", "gfx1103"), "hip", (6, 0), "ROCm 6.0", _ROCM),
    Row(("gfx1150", "gfx1151", "gfx1200", "gfx1201"), "hip", (6, 4), "ROCm 6.4", _ROCM),
)  # fmt: skip

RUNTIMES: dict[Backend, tuple[str, ...]] = {
    "cuda": ("torch-cuda", "cuda"),
    "hip": ("torch-hip", "hip"),
    "wgpu": ("wgpu",),
}
"""Runtimes a back end can start on, the preferred one first."""

VENDOR_BACKEND: dict[str, Backend] = {"nvidia": "cuda", "amd": "hip"}

HIP_ARCHITECTURES = frozenset(
    chip for row in TABLE if row.backend == "hip" for chip in row.architectures
)


def row_of(architecture: str | None) -> Row | None:
    """Return the row of a chip, or None where no back end has kernels for it."""
    return next((row for row in TABLE if architecture in row.architectures), None)
