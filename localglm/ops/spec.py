"""What an op must compute, on which inputs, how close, and which mistakes must be seen.

An ``OpSpec`` names a method of ``backends.base.Ops`` and its float64 definition. Cases hold host
arrays; ``define`` runs the definition on them and ``perform`` the method of a device, so that both
can be compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import numpy as np

from localglm.arrays import F64, AnyArray
from localglm.backends.base import Buffer, Cells, Device, StoredExperts, StoredMatrix
from localglm.errors import ShapeError
from localglm.ops.error import Tolerance, measure
from localglm.quant.decode import decode_rows
from localglm.quant.types import Family

Arguments: TypeAlias = Mapping[str, object]
Outputs: TypeAlias = dict[str, AnyArray]
Definition: TypeAlias = Callable[..., object]
Splitter: TypeAlias = Callable[[Arguments, int], tuple[Arguments, Arguments]]


class Precision(Enum):
    """What a device computes in, which decides the tolerance.

    EIGHT_BIT is float32 with 8-bit activations in the products of block types.
    """

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    EIGHT_BIT = "8-bit activations"


FLOAT64 = Tolerance(1e-24, 1e-12)
FLOAT32 = Tolerance(1e-12, 4e-6)
EIGHT_BIT = Tolerance(2e-3, 0.1)
"""A chain of products: rows with a heavy tail, as after SwiGLU, round by a few percent."""
SIGMAS = Tolerance(12.0, 6.0)
"""For errors counted in standard deviations of the rounding of activations."""


@dataclass(frozen=True, slots=True)
class HostCells:
    """``backends.base.Cells`` on the host."""

    index: AnyArray
    count: AnyArray


@dataclass(frozen=True, slots=True)
class Case:
    """One input. ``arguments`` are those of the method, in host form (see ``perform``)."""

    label: str
    arguments: Arguments

    @property
    def has_blocks(self) -> bool:
        """Tell whether a device with 8-bit activations uses them here."""
        return any(s.type.family is not Family.FLOAT for s in self._stored)

    @property
    def elements(self) -> int:
        """Count the values of all arrays: the cost of a loop over them."""
        arrays = [a for a in self.arguments.values() if isinstance(a, np.ndarray)]
        return sum(a.size for a in arrays) + sum(int(np.prod(s.shape)) for s in self._stored)

    @property
    def _stored(self) -> list[StoredMatrix]:
        out: list[StoredMatrix] = []
        for argument in self.arguments.values():
            if isinstance(argument, StoredExperts):
                out += [argument.gate, argument.up, argument.down]
            elif isinstance(argument, StoredMatrix):
                out.append(argument)
        return out


@dataclass(frozen=True, slots=True)
class Variant:
    """A plausible mistake. On some case its error is at least ``margin`` times the tolerance."""

    name: str
    definition: Definition
    margin: float = 10.0


def _as_is(outputs: Outputs) -> Outputs:
    return outputs


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One op of the table.

    ``outputs`` names what the method returns, ``state`` the arguments it updates in place, ``host``
    array arguments that stay on the host. ``tokens`` have the token axis first; ``position`` is the
    argument that says where the chunk starts. ``view`` brings outputs into comparable form.
    ``rounding`` gives the standard deviation that 8-bit activations cause in each output.
    """

    name: str
    formula: str
    definition: Definition
    cases: Callable[[], list[Case]]
    outputs: tuple[str, ...] = ("out",)
    state: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    position: str | None = None
    splitter: Splitter | None = None
    view: Callable[[Outputs], Outputs] = _as_is
    float32: Tolerance = FLOAT32
    rounding: Callable[[Arguments], AnyArray] | None = None
    variants: tuple[Variant, ...] = field(default=())

    def excess(self, got: Outputs, case: Case, precision: Precision) -> float:
        """Return how many times outputs exceed the tolerance of a case; at most 1 passes."""
        want = self.define(case.arguments)
        if precision is Precision.FLOAT64:
            return measure(got, want).over(FLOAT64)
        if precision is Precision.FLOAT32 or not case.has_blocks:
            return measure(got, want).over(self.float32)
        if self.rounding is None:
            return measure(got, want).over(EIGHT_BIT)
        sigma = {self.outputs[0]: self.rounding(case.arguments)}
        return measure(got, want, sigma).over(SIGMAS)

    def define(self, arguments: Arguments, definition: Definition | None = None) -> Outputs:
        """Run the definition, or a variant of it, on host arrays in float64."""
        given = {name: _to_float64(value) for name, value in arguments.items()}
        named = self._named((definition or self.definition)(**given))
        return self.view(named | {name: _array(given[name]) for name in self.state})

    def perform(self, device: Device, arguments: Arguments) -> Outputs:
        """Run the method of a device and download everything it made."""
        handles = {name: self._upload(device, name, value) for name, value in arguments.items()}
        result = getattr(device, self.name)(**handles)
        device.sync()
        made = self._named(result, device)
        return self.view(made | {name: _download(device, handles[name]) for name in self.state})

    def split(self, arguments: Arguments, first: int) -> tuple[Arguments, Arguments]:
        """Cut a chunk after its ``first`` tokens; state is carried by the caller."""
        if self.splitter is not None:
            return self.splitter(arguments, first)
        head, rest = dict(arguments), dict(arguments)
        for name in arguments.keys() & set(self.tokens):
            head[name], rest[name] = cut(arguments[name], first)
        if self.position is not None:
            start = arguments[self.position]
            assert isinstance(start, int)
            rest[self.position] = start + first
        return head, rest

    def _named(self, result: object, device: Device | None = None) -> Outputs:
        if result is None:
            return {}
        if dataclasses.is_dataclass(result) and not isinstance(result, type):
            names = (f.name for f in dataclasses.fields(result))
            parts: tuple[object, ...] = tuple(getattr(result, n) for n in names)
        else:
            parts = result if isinstance(result, tuple) else (result,)
        if device is not None:
            parts = tuple(_download(device, p) for p in parts)
        return dict(zip(self.outputs, (_array(p) for p in parts), strict=True))

    def _upload(self, device: Device, name: str, value: object) -> object:
        if isinstance(value, StoredMatrix):
            return device.matrix(value)
        if isinstance(value, StoredExperts):
            return device.experts(value)
        if isinstance(value, HostCells):
            return Cells(device.upload(value.index), device.upload(value.count))
        if not isinstance(value, np.ndarray) or name in self.host:
            return value
        if value.dtype != np.float16:
            return device.upload(value)
        cache = device.alloc(value.shape, "f16")
        device.store_rows(cache, device.upload(value.astype(np.float32)), 0)
        return cache


def cut(value: object, first: int) -> tuple[object, object]:
    """Cut an array or a list along its first axis."""
    assert isinstance(value, np.ndarray | list)
    return value[:first], value[first:]


def decoded(weight: StoredMatrix) -> F64:
    """Return a weight in float64."""
    rows = decode_rows(weight.type, weight.data.reshape(int(np.prod(weight.shape[:-1])), -1))
    return rows.reshape(weight.shape).astype(np.float64)


def _to_float64(value: object) -> object:
    if isinstance(value, StoredMatrix):
        return decoded(value)
    if isinstance(value, StoredExperts):
        return tuple(decoded(side) for side in (value.gate, value.up, value.down))
    if isinstance(value, np.ndarray):
        # float16 stays: it is the type of a cache, and what is stored there is rounded to it
        return value.astype(np.float64 if value.dtype == np.float32 else value.dtype)
    return value


def _array(value: object) -> AnyArray:
    if not isinstance(value, np.ndarray):
        raise ShapeError(f"an op returned a {type(value).__name__}, not an array")
    return value


def _download(device: Device, handle: object) -> AnyArray:
    assert isinstance(handle, Buffer)
    return device.download(handle)
