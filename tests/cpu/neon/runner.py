"""Calls of the native library, made here or by a program of another processor under emulation."""

import ctypes
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from build_tools import native
from localglm.backends.cpu.library import _OPS, ISA_IDS

LETTERS = {**_OPS, "lg_quantise": "ipllpp"}
TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int, "l": ctypes.c_int64, "f": ctypes.c_float}
TARGET = native.Target("aarch64-linux-musl", "runner", native._ARM, position_independent=False)
EMULATOR = "qemu-aarch64-static"


@dataclass(frozen=True)
class Call:
    """A function and its arguments behind pool and instruction set: arrays, None or numbers."""

    name: str
    arguments: tuple

    def request(self):
        letters = LETTERS[self.name]
        parts = [self.name.encode().ljust(32, b"\0"), letters.encode().ljust(32, b"\0")]
        for letter, value in zip(letters, self.arguments, strict=True):
            if letter == "p":
                data = b"" if value is None else value.tobytes()
                parts += [struct.pack("<q", len(data)), data]
            else:
                parts.append(struct.pack("<d" if letter == "f" else "<q", value))
        return b"".join(parts)

    def arrays(self):
        return [value for value in self.arguments if isinstance(value, np.ndarray)]

    def answer(self, stream):
        """Code and arrays as the function left them."""
        (code,) = struct.unpack("<q", stream.take(8))
        return code, [
            np.frombuffer(stream.take(a.nbytes), a.dtype).reshape(a.shape) for a in self.arrays()
        ]

    def here(self, library, pool, isa):
        """The same on this machine."""
        copies = [v.copy() if isinstance(v, np.ndarray) else v for v in self.arguments]
        function = getattr(library, self.name)
        function.argtypes = [ctypes.c_void_p, ctypes.c_int, *(TYPES[c] for c in LETTERS[self.name])]
        plain = [v.ctypes.data if isinstance(v, np.ndarray) else v for v in copies]
        code = function(pool, ISA_IDS[isa], *plain)
        return code, [v for v in copies if isinstance(v, np.ndarray)]


@dataclass
class Stream:
    data: bytes
    at: int = 0

    def take(self, count):
        assert self.at + count <= len(self.data), "the answer ends early"
        self.at += count
        return self.data[self.at - count : self.at]


@dataclass(frozen=True)
class Runner:
    """The program under an emulated processor with one instruction set of the library."""

    program: Path
    processor: str

    def _run(self, *words, data=b""):
        assert shutil.which(EMULATOR), f"{EMULATOR} is missing: apt-get install qemu-user-static"
        command = [EMULATOR, "-cpu", self.processor, str(self.program), *words]
        done = subprocess.run(command, input=data, capture_output=True, timeout=900, check=False)
        assert done.returncode == 0, f"{command} gave {done.returncode}: {done.stderr.decode()}"
        return done.stdout

    def best_isa(self):
        return int(self._run())

    def answers(self, isa, calls):
        stream = Stream(self._run(str(ISA_IDS[isa]), data=b"".join(c.request() for c in calls)))
        made = [call.answer(stream) for call in calls]
        assert stream.at == len(stream.data)
        return made


def build_runner(folder, flags=native.FLAGS):
    """Compile the library and the program for 64-bit ARM, all in one file."""
    if not native.TABLES.exists():
        subprocess.run([sys.executable, "-m", "build_tools.tables"], cwd=native.ROOT, check=True)
    folder.mkdir()
    program = folder / "runner"
    source = Path(__file__).with_name("runner.c")
    objects = native._objects(TARGET, folder, flags)
    includes = ("-I", str(native.SOURCE))
    native.zig(["-static", *flags, *includes, str(source), *objects, "-o", str(program)], TARGET)
    return program
