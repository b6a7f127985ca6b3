"""The routed experts of a layer: where their bytes lie, and the op that runs the chosen ones."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from localglm.backends.cpu.boundary import CpuMatrix, floats, indices, require, stored
from localglm.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from localglm.arrays import F32, I32, U64
    from localglm.backends.base import (
        Buffer,
        ExpertHome,
        Experts,
        LentExpert,
        Matrix,
        StoredExperts,
    )
    from localglm.backends.cpu.library import Native
    from localglm.backends.cpu.results import Results


class ExpertFields(ctypes.Structure):
    """``lg_experts`` of csrc/lg_products.h."""

    _fields_: ClassVar = [
        ("gate", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("down", ctypes.c_void_p),
        ("gate_type", ctypes.c_int32),
        ("up_type", ctypes.c_int32),
        ("down_type", ctypes.c_int32),
        ("has_limit", ctypes.c_int32),
        ("experts", ctypes.c_int64),
        ("d", ctypes.c_int64),
        ("f", ctypes.c_int64),
        ("limit", ctypes.c_float),
    ]


@dataclass(frozen=True, slots=True)
class CpuExperts:
    """Experts of a layer. ``addresses`` [3, experts]: gate, up and down of each, 0 where absent."""

    layer: int
    stacks: tuple[CpuMatrix, CpuMatrix, CpuMatrix]
    addresses: U64
    home: ExpertHome | None

    @classmethod
    def of(cls, stored: StoredExperts, home: ExpertHome | None) -> CpuExperts:
        """Check that the three stacks belong together, and find every expert.

        Raises: ShapeError when they do not.
        """
        gate, up, down = (CpuMatrix.of(side) for side in (stored.gate, stored.up, stored.down))
        experts, f, d = gate.shape if len(gate.shape) == 3 else (0, 0, 0)
        if not experts or up.shape != gate.shape or down.shape != (experts, d, f):
            raise ShapeError(
                f"{gate.name}: {gate.shape}, {up.shape} and {down.shape} are not one layer"
            )
        addresses = np.zeros((3, experts), np.uint64)
        if home is None:
            for row, side in zip(addresses, (gate, up, down), strict=True):
                step = side.data.nbytes // experts
                row[:] = side.address + step * np.arange(experts, dtype=np.uint64)
        return cls(stored.layer, (gate, up, down), addresses, home)

    @property
    def resident(self) -> bool:
        """Whether the bytes are mapped, so that nobody needs to be told which come next."""
        return self.home is None

    def holding(self, lent: Iterable[LentExpert]) -> U64:
        """Return addresses with only the experts ``lent`` present."""
        addresses = np.zeros_like(self.addresses)
        for one in lent:
            for row, part in enumerate((one.gate, one.up, one.down)):
                addresses[row, one.expert] = part.ctypes.data
        return addresses


def described(
    sides: tuple[CpuMatrix, CpuMatrix, CpuMatrix], addresses: U64, shape: tuple[int, ...],
    limit: float | None,
) -> ExpertFields:  # fmt: skip
    """Return what C reads of experts of ``shape`` (count, f, d); ``addresses`` must outlive it."""
    experts, f, d = shape
    at, step = addresses.ctypes.data, addresses.strides[0]
    return ExpertFields(
        at, at + step, at + 2 * step, *(side.type.value.ggml_id for side in sides),
        limit is not None, experts, d, f, limit or 0.0,
    )  # fmt: skip


class ExpertOps:
    """The chosen experts of each token."""

    _native: Native
    _results: Results
    _exact: int

    def expect_experts(self, experts: Experts, ids: Buffer, *, certain: bool) -> None:
        """Tell the home of the experts, if they have one, which will be asked for."""
        held = _held(experts)
        if held.home is not None:
            chosen = indices("expect_experts ids", ids, None, None)
            held.home.expect(held.layer, _distinct(chosen), certain=certain)

    def expert_ffn(self, experts: Experts, x: Buffer, ids: Buffer, limit: float | None) -> Buffer:
        """Clamped SwiGLU of the chosen experts: x [t, d], ids [t, x] -> [t, x, d]."""
        held = _held(experts)
        count, _, d = held.stacks[0].shape
        rows = floats("expert_ffn x", x, None, d)
        chosen = indices("expert_ffn ids", ids, len(rows), None)
        require(chosen.size > 0, "expert_ffn: no expert was chosen", chosen)
        out = self._results.empty((*chosen.shape, d))
        if held.home is None:
            self._run(held, held.addresses, rows, chosen, limit, out)
            return out
        wanted = _distinct(chosen)
        require(wanted[0] >= 0 and wanted[-1] < count, f"expert_ffn: {count} experts", chosen)
        for some in held.home.lend(held.layer, wanted):
            self._run(held, held.holding(some), rows, chosen, limit, out)
        return out

    def gated_ffn(
        self, gate: Matrix, up: Matrix, down: Matrix, x: Buffer, limit: float | None
    ) -> Buffer:
        """Clamped SwiGLU of one feed-forward, which is an expert every token chooses."""
        g, u, w = stored(gate, 2), stored(up, 2), stored(down, 2)
        f, d = g.shape
        require(u.shape == g.shape and w.shape == (d, f), f"{g.name}: not one feed-forward")
        rows = floats("gated_ffn x", x, None, d)
        addresses = np.array(((g.address,), (u.address,), (w.address,)), np.uint64)
        layer = described((g, u, w), addresses, (1, f, d), limit)
        chosen = np.zeros((len(rows), 1), np.int32)
        out = self._results.empty((len(rows), d))
        self._native.run(
            "lg_expert_ffn", self._exact, ctypes.addressof(layer), rows.ctypes.data,
            chosen.ctypes.data, *chosen.shape, out.ctypes.data,
        )  # fmt: skip
        return out

    def _run(
        self, held: CpuExperts, addresses: U64, x: F32, ids: I32, limit: float | None, out: F32
    ) -> None:
        layer = described(held.stacks, addresses, held.stacks[0].shape, limit)
        self._native.run(
            "lg_expert_ffn", self._exact, ctypes.addressof(layer), x.ctypes.data,
            ids.ctypes.data, *ids.shape, out.ctypes.data,
        )  # fmt: skip


def _held(experts: Experts) -> CpuExperts:
    if not isinstance(experts, CpuExperts):
        raise ShapeError(f"a {type(experts).__name__} is not of the CPU device")
    return experts


def _distinct(ids: I32) -> list[int]:
    return [int(e) for e in np.unique(ids)]
