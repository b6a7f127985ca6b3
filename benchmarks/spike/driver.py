"""The few calls of NVIDIA's driver library that the spike needs, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class Driver:
    """One context on device 0 with one stream; memory is freed with the process."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._stream = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(self._stream), 0)
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            self._call("cuEventCreate", ctypes.byref(event), 0)

    def _call(self, name: str, *args: object) -> None:
        code = getattr(self._lib, name)(*args)
        if code != 0:
            text = ctypes.c_char_p()
            self._lib.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def load(self, ptx: Path) -> Callable[[str], ctypes.c_void_p]:
        """Load a module and return its look-up of kernels by name."""
        module = ctypes.c_void_p()
        image = ptx.read_bytes() + b"\0"
        self._call("cuModuleLoadData", ctypes.byref(module), image)

        def kernel(name: str) -> ctypes.c_void_p:
            function = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            return function

        return kernel

    def empty(self, nbytes: int) -> int:
        """Return the address of fresh memory, filled with NaN patterns."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        self._call("cuMemsetD8_v2", address, ctypes.c_ubyte(255), ctypes.c_size_t(nbytes))
        return address.value

    def upload(self, array: NDArray[np.generic]) -> int:
        """Return the address of a copy of ``array``."""
        data = np.ascontiguousarray(array)
        address = self.empty(data.nbytes)
        source = ctypes.c_void_p(data.ctypes.data)
        self._call(
            "cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(data.nbytes)
        )
        return address

    def download(self, address: int, out: NDArray[np.float32]) -> NDArray[np.float32]:
        """Copy device memory into ``out`` and return it."""
        self._call("cuCtxSynchronize")
        target = ctypes.c_void_p(out.ctypes.data)
        self._call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(out.nbytes))
        return out

    def launch(
        self,
        kernel: ctypes.c_void_p,
        grid: tuple[int, int],
        threads: int,
        *args: ctypes.Structure | ctypes._SimpleCData[int],
    ) -> None:
        """Launch on the stream; every argument is passed by value."""
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
        self._call(
            "cuLaunchKernel", kernel, *grid, 1, threads, 1, 1, 0, self._stream, pointers, None
        )

    def capture(self, record: Callable[[], None]) -> ctypes.c_void_p:
        """Record launches into a graph that ``time_graph`` replays."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, 2)
        record()
        self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        self._call(
            "cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0)
        )
        return executable

    def time_graph(self, graph: ctypes.c_void_p) -> float:
        """Replay a graph once and return its seconds between events."""
        start, stop = self._events
        self._call("cuEventRecord", start, self._stream)
        self._call("cuGraphLaunch", graph, self._stream)
        self._call("cuEventRecord", stop, self._stream)
        self._call("cuEventSynchronize", stop)
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), start, stop)
        return milliseconds.value / 1000
