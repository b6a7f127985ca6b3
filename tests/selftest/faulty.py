"""CPU devices with one op planted wrong; ``open_OP__FAULT`` opens one, in the worker too."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from localglm.backends.cpu.device import CpuDevice
from localglm.engine.devices import DeviceChoice
from localglm.ops.registry import OPS, op

Array = np.ndarray[Any, Any]


def _sign(a: Array) -> None:
    a[..., -1] = -a[..., -1]


def _scale(a: Array) -> None:
    a *= a.dtype.type(1.01)


def _lane(a: Array) -> None:
    a[..., a.shape[-1] // 2] = 0


def _row(a: Array) -> None:
    a[-1] = 0


SPOILS: dict[str, Callable[[Array], None]] = {
    "sign": _sign, "scale": _scale, "lane": _lane, "row": _row,
}  # fmt: skip
_INTEGER = {"select_cells", "dense_cells"}
_TIES = {"select_cells": 0, "route": 1}


def faults() -> list[tuple[str, str]]:
    """Every op with every fault that concerns it."""
    out = [(s.name, f) for s in OPS for f in SPOILS if not (s.name in _INTEGER and f == "scale")]
    out += [(s.name, "state") for s in OPS if s.state]
    return out + [(name, "ties") for name in _TIES]


@dataclass
class FaultyDevice:
    """A device that does one op wrong and everything else right."""

    inner: CpuDevice
    op: str
    fault: str

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return self._wrong(found) if name == self.op else found

    def _wrong(self, right: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            self._fail()
            if self.fault == "ties":
                named = self._nudged(named)
            before = {n: self.inner.download(named[n]) for n in op(self.op).state if n in named}
            result = right(*given, **named)
            if self.fault == "state":
                self._put_back(before, named)
            if self.fault not in SPOILS:
                return result
            if result is None:
                for n in before:
                    self.inner.copy(named[n], self._spoiled(named[n]))
                return None
            if dataclasses.is_dataclass(result):
                fields = [f.name for f in dataclasses.fields(result)]
                return type(result)(*(self._spoiled(getattr(result, f)) for f in fields))  # type: ignore[operator]
            return self._spoiled(result)

        return run

    def _fail(self) -> None:
        if self.fault == "dies":
            os._exit(3)
        if self.fault == "hangs":
            threading.Event().wait()
        if self.fault == "raises":
            raise RuntimeError("the kernel was refused")

    def _put_back(self, before: dict[str, Array], named: dict[str, Any]) -> None:
        for name, old in before.items():
            np.copyto(named[name], old)

    def _nudged(self, named: dict[str, Any]) -> dict[str, Any]:
        """Make the higher index win a tie."""
        name = "scores" if self.op == "select_cells" else "bias"
        values = self.inner.download(named[name])
        step = np.arange(values.shape[-1]) * np.float32(1e-5)
        return named | {name: self.inner.upload((values + step).astype(np.float32))}

    def _spoiled(self, buffer: Any) -> Any:
        array = self.inner.download(buffer)
        if array.size:
            if self.fault == "scale" and array.dtype.kind != "f":
                return buffer
            SPOILS[self.fault](array)
        if array.dtype == np.float16:
            cache = self.inner.alloc(array.shape, "f16")
            np.copyto(cache, array)  # type: ignore[arg-type]
            return cache
        return self.inner.upload(array)


def opener(name: str, fault: str) -> Callable[[DeviceChoice], Any]:
    """Return what opens a device with this fault."""
    return lambda _choice: FaultyDevice(CpuDevice(threads=1), name, fault)


def __getattr__(name: str) -> Any:
    if not name.startswith("open_"):
        raise AttributeError(name)
    return opener(*name.removeprefix("open_").split("__"))
