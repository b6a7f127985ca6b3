"""Files of experts with known bytes, and a drive whose every read a test can bend."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from localglm.experts.layout import ByteRange, ExpertLayout, LayerRanges
from localglm.experts.streamed import StreamedHome, StreamedOptions

EXPERTS = 9
SIZES = {2: (5000, 4096, 8191), 3: (6000, 3000, 8000), 5: (4096, 4096, 12288)}
"""Bytes of gate, up and down in each layer: unlike each other, and no multiples of a page."""


@dataclass
class Drive:
    """Answers reads from memory; ``bend`` may refuse, shorten or hold one back."""

    content: bytes
    bend: object = None
    calls: list[tuple[int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, file, address, nbytes, offset, fault):
        with self.lock:
            self.calls.append((offset, nbytes))
            number = len(self.calls)
        if self.bend is not None:
            answer = self.bend(number, offset, nbytes)
            if isinstance(answer, OSError):
                fault[0] = answer.errno
                return -1
            if answer is not None:
                nbytes = answer
        data = self.content[offset : offset + nbytes]
        ctypes.memmove(address, data, len(data))
        return len(data)


def make_layout(lead: int = 77, shards: int = 1) -> tuple[ExpertLayout, list[bytes]]:
    """Return a layout whose parts begin anywhere, and the bytes of its files."""
    chance = np.random.default_rng(11)
    contents = [chance.bytes(lead) for _ in range(shards)]
    layers = {}
    for at, (layer, sizes) in enumerate(SIZES.items()):
        parts = []
        for part, nbytes in enumerate(sizes):
            shard = (at + part) % shards
            parts.append(ByteRange(shard, len(contents[shard]), nbytes))
            contents[shard] += chance.bytes(nbytes * EXPERTS + 13)
        layers[layer] = LayerRanges(layer, EXPERTS, tuple(parts))
    return ExpertLayout(MappingProxyType(layers), used=2), contents


def write_files(folder: Path, contents: list[bytes]) -> list[Path]:
    paths = [folder / f"experts-{number}.bin" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def make_home(folder: Path, slots: int = 4, drive: Drive | None = None, **options) -> StreamedHome:
    """Return a home over one file, or over ``drive`` when one is given."""
    layout, contents = make_layout()
    if drive is not None:
        drive.content = contents[0]
        options["read"] = drive.read
    options = StreamedOptions(options.pop("depth", 4), **options)
    paths = write_files(folder, contents)
    return StreamedHome(layout, paths, slots * layout.slot_bytes, options)


def expected(layout: ExpertLayout, contents: list[bytes], layer: int, expert: int) -> list[bytes]:
    return [
        contents[part.shard][part.offset : part.offset + part.nbytes]
        for part in layout.layers[layer].of(expert)
    ]


def borrow(home, layer, experts):
    """Return the bytes of all ``experts`` as they were lent, and the sizes of the batches."""
    got, batches = {}, []
    for some in home.lend(layer, experts):
        batches.append(len(some))
        for one in some:
            assert one.expert not in got
            got[one.expert] = [one.gate.tobytes(), one.up.tobytes(), one.down.tobytes()]
    return got, batches


def truth(layer, experts):
    layout, contents = make_layout()
    return {expert: expected(layout, contents, layer, expert) for expert in experts}
