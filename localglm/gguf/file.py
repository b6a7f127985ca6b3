"""An open GGUF model set: metadata, tensors, and zero-copy views of their bytes."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

import numpy as np

from localglm.arrays import U8
from localglm.errors import ModelFileError
from localglm.gguf.aliases import (
    ARCHITECTURES,
    alias_notes,
    architecture_keys,
    is_accepted,
    resolve,
)
from localglm.gguf.cursor import shown
from localglm.gguf.header import Header, TensorInfo, read_header
from localglm.gguf.shards import locate
from localglm.gguf.splits import check_split, check_total, merge_metadata, merge_tensors

_SMALLEST_FILE = 24  # magic, version and two counts


class ModelFile:
    """A checked model set, mapped read-only. Views from ``data`` stay valid after ``close``."""

    __slots__ = ("_keys", "_maps", "arch", "file_bytes", "metadata", "notes", "paths", "tensors")

    def __init__(
        self, paths: tuple[Path, ...], headers: list[Header], maps: tuple[memoryview, ...]
    ) -> None:
        check_split(paths, headers)
        metadata = merge_metadata(paths, headers)
        self.paths = paths
        self.metadata: Mapping[str, object] = MappingProxyType(metadata)
        self.tensors: Mapping[str, TensorInfo] = MappingProxyType(merge_tensors(paths, headers))
        check_total(paths, headers)
        self.file_bytes = sum(len(view) for view in maps)
        self.arch = _architecture(metadata, paths[0])
        self._keys = architecture_keys(metadata, self.arch)
        self._maps = maps
        self.notes: tuple[str, ...] = tuple(alias_notes(self._keys))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get(self, key: str, default: object = None) -> object:
        """Return the value of an architecture key, given without its prefix, in any spelling."""
        found = resolve(self._keys, key)
        return default if found is None else self.metadata[found]

    def spelled(self, key: str) -> str:
        """Return ``key`` as the file spells it, or with this file's prefix when it is absent."""
        return resolve(self._keys, key) or f"{self.arch}.{key}"

    def data(self, name: str) -> U8:
        """Return the bytes of a tensor: one-dimensional, read-only, not copied."""
        if not self._maps:
            raise ModelFileError(f"{self.paths[0].name} was closed", why="its tensors are needed")
        info = self.tensors[name]
        view = self._maps[info.shard][info.offset : info.offset + info.nbytes]
        return np.frombuffer(view, np.uint8)

    def close(self) -> None:
        """Let go of the files; their memory goes when the last view of it does."""
        self._maps = ()


def open_model(path: Path) -> ModelFile:
    """Open and check the model set that ``path`` names: a file, any shard, or a folder.

    Raises: ModelFileError when the set is absent, incomplete, damaged or of another architecture.
    """
    paths = locate(path)
    maps = tuple(_map(file) for file in paths)
    headers = [read_header(view, paths[shard], shard) for shard, view in enumerate(maps)]
    return ModelFile(paths, headers, maps)


def _map(path: Path) -> memoryview:
    """Map a whole file read-only; the map lives as long as its views."""
    try:
        with ExitStack() as stack:
            # without O_NONBLOCK, opening a pipe waits for somebody to write to it
            flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
            descriptor = os.open(path, flags)
            stack.callback(os.close, descriptor)
            status = os.fstat(descriptor)
            _check_size(path, status)
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError, OverflowError) as error:
        raise ModelFileError(
            f"{path} cannot be read",
            why=getattr(error, "strerror", None) or str(error),
            try_="check that the file exists and that your user may read it",
        ) from None


def _check_size(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{path} is not a regular file", try_="give the path of a .gguf file")
    if status.st_size < _SMALLEST_FILE:
        size = status.st_size
        raise ModelFileError(
            f"{path.name} is {'empty' if size == 0 else 'cut short'}",
            why=f"it has {size} bytes; a GGUF file has at least {_SMALLEST_FILE}",
            try_="download the file again",
        )


def _architecture(metadata: Mapping[str, object], path: Path) -> str:
    name = metadata.get("general.architecture")
    accepted = ", ".join(ARCHITECTURES)
    if not isinstance(name, str):
        raise ModelFileError(
            f"{path.name} does not say which architecture it is for",
            why=f"general.architecture is missing or no text; accepted: {accepted}",
            try_="give the first shard's set, or download the file again",
        )
    if is_accepted(name):
        return name
    why = f"accepted: {accepted}"
    if name == "clip":
        why += "; this file is a vision projector that belongs to another file"
    raise ModelFileError(
        f"{path.name} is for the architecture {shown(name)}",
        why=why,
        try_="use a GLM-5.3-Flash file, or a newer localglm if this is one",
    )
