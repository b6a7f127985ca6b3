"""The header of one GGUF file: version, metadata, and where each tensor lies.

Everything a header claims is checked against the bytes that are there. Tensor data is never
touched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from localglm.errors import ModelFileError
from localglm.gguf.cursor import Cursor, shown
from localglm.gguf.ggml_types import tensor_type
from localglm.quant.types import StorageType

MAGIC = b"GGUF"
ACCEPTED_VERSIONS = (2, 3)
KEYS_LIMIT = 1 << 16
TENSORS_LIMIT = 1 << 17  # the real model has 1412
MAX_DIMENSIONS = 4
DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies and what it is.

    ``shape`` is in numpy order (outermost first) without the 1s a writer may append to ``ne``.
    ``offset`` counts from the start of the file of ``shard``. ``type`` is None when localglm cannot
    compute with it; ``nbytes`` of a type unknown altogether reaches to the next tensor.
    """

    name: str
    shape: tuple[int, ...]
    type: StorageType | None
    shard: int
    offset: int
    nbytes: int
    type_name: str

    @property
    def values(self) -> int:
        """Number of weights."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Header:
    """What one file says about itself."""

    version: int
    metadata: dict[str, object]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    alignment: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tensor as the file lists it; ``offset`` counts from the start of the data."""

    name: str
    ne: tuple[int, ...]
    type_id: int
    offset: int


def read_header(data: memoryview, path: Path, shard: int) -> Header:
    """Parse and check the header in ``data``, the mapped bytes of the file ``path``.

    Raises: ModelFileError naming what is wrong.
    """
    cursor = Cursor(data, path)
    version = _read_version(cursor, path)
    tensor_count = cursor.u64("the tensor count")
    key_count = cursor.u64("the key count")
    _check_count(cursor, "tensors", tensor_count, 32, TENSORS_LIMIT)
    _check_count(cursor, "keys", key_count, 13, KEYS_LIMIT)
    metadata = _read_metadata(cursor, key_count)
    alignment = _alignment(cursor, metadata)
    entries = [_read_entry(cursor) for _ in range(tensor_count)]
    base = -(-cursor.position // alignment) * alignment
    tensors = _place(cursor, entries, base, alignment, shard)
    return Header(version, metadata, tensors, base, alignment)


def _read_version(cursor: Cursor, path: Path) -> int:
    magic = bytes(cursor.take(4, "the magic number"))
    if magic != MAGIC:
        raise _not_gguf(magic, path)
    version = cursor.u32("the version")
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    if swapped in (1, *ACCEPTED_VERSIONS):
        raise ModelFileError(
            f"{path.name} is a big-endian GGUF file",
            why="localglm reads little-endian files only",
            try_="download the ordinary (little-endian) file",
        )
    if version not in ACCEPTED_VERSIONS:
        raise ModelFileError(
            f"{path.name} has GGUF version {version}",
            why="accepted versions: 2 and 3",
            try_="convert the model with a current tool, or update localglm",
        )
    return version


def _not_gguf(magic: bytes, path: Path) -> ModelFileError:
    why, try_ = f"it starts with {magic!r} instead of b'GGUF'", "give the path of a .gguf file"
    if magic == b"vers":
        why = "it starts like a Git LFS pointer: the text that stands for a file not downloaded yet"
        try_ = "fetch the real file (git lfs pull, or download it in a browser)"
    elif magic[:1] == b"<":
        why = "it starts like a web page, not like a model"
        try_ = "download the file itself, not the page that shows it"
    return ModelFileError(f"{path.name} is not a GGUF file", why=why, try_=try_)


def _check_count(cursor: Cursor, what: str, count: int, smallest: int, limit: int) -> None:
    """Refuse a count the file cannot hold, before anything is read or allocated for it."""
    if count > limit:
        raise cursor.damaged(f"it claims {count} {what}; at most {limit} are accepted")
    if count * smallest > cursor.left:
        raise cursor.damaged(
            f"it claims {count} {what}, but the file ends after {cursor.left} bytes,"
            " as after a download that was cut short"
        )


def _read_metadata(cursor: Cursor, count: int) -> dict[str, object]:
    metadata: dict[str, object] = {}
    for index in range(count):
        key = cursor.name(f"key {index}")
        if key in metadata:
            raise cursor.damaged(f"the key {shown(key)} appears twice")
        metadata[key] = cursor.value(key)
    return metadata


def _alignment(cursor: Cursor, metadata: dict[str, object]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= 1 << 20 or alignment & (alignment - 1):
        raise cursor.damaged(
            f"general.alignment is {alignment!r}; a power of two from 8 is expected"
        )
    return alignment


def _read_entry(cursor: Cursor) -> _Entry:
    name = cursor.name("the name of a tensor")
    dimensions = cursor.u32(f"the dimensions of {shown(name)}")
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise cursor.damaged(
            f"tensor {shown(name)} has {dimensions} dimensions; 1 to 4 are possible"
        )
    ne = tuple(cursor.u64(f"the shape of {shown(name)}") for _ in range(dimensions))
    if 0 in ne:
        raise cursor.damaged(f"tensor {shown(name)} has the shape {list(ne)}")
    type_id = cursor.u32(f"the type of {shown(name)}")
    return _Entry(name, ne, type_id, cursor.u64(f"the offset of {shown(name)}"))


def _place(
    cursor: Cursor, entries: list[_Entry], base: int, alignment: int, shard: int
) -> tuple[TensorInfo, ...]:
    """Turn entries into absolute byte ranges that lie inside the file, aligned and apart."""
    end_of_file = cursor.position + cursor.left
    placed: dict[str, TensorInfo] = {}
    limit = end_of_file
    for entry in sorted(entries, key=lambda e: e.offset, reverse=True):
        name, start = shown(entry.name), base + entry.offset
        if entry.name in placed:
            raise cursor.damaged(f"tensor {name} appears twice")
        if entry.offset % alignment:
            raise cursor.damaged(
                f"tensor {name} is not aligned to {alignment} bytes: {entry.offset}"
            )
        nbytes = _size(cursor, entry, limit - start)
        if start + nbytes > end_of_file:
            raise ModelFileError(
                f"{cursor.file_name} is cut short",
                why=f"tensor {name} ends at byte {start + nbytes}; the file has {end_of_file}",
                try_="resume or repeat the download",
            )
        if start + nbytes > limit:
            raise cursor.damaged(f"tensor {name} overlaps the tensor after it")
        placed[entry.name] = _info(entry, shard, start, nbytes)
        limit = start
    return tuple(placed[entry.name] for entry in entries)


def _size(cursor: Cursor, entry: _Entry, room: int) -> int:
    facts = tensor_type(entry.type_id)
    if facts is None:
        return max(room, 1)
    if entry.ne[0] % facts.values:
        raise cursor.damaged(
            f"tensor {shown(entry.name)} has rows of {entry.ne[0]} values, which do not fill"
            f" {facts.name} blocks of {facts.values}"
        )
    return math.prod(entry.ne) // facts.values * facts.nbytes


def _info(entry: _Entry, shard: int, start: int, nbytes: int) -> TensorInfo:
    facts = tensor_type(entry.type_id)
    ne = entry.ne
    while len(ne) > 1 and ne[-1] == 1:
        ne = ne[:-1]
    return TensorInfo(
        name=entry.name,
        shape=ne[::-1],
        type=StorageType.from_ggml_id(entry.type_id),
        shard=shard,
        offset=start,
        nbytes=nbytes,
        type_name=f"type {entry.type_id}" if facts is None else facts.name,
    )
