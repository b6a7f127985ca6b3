"""Every way a header can lie: a named refusal, at once."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from localglm.errors import ModelFileError
from localglm.gguf import open_model
from tests import gguf_files as files
from tests.gguf_files import Content, Tensor, Value

Make = Callable[[], bytes]


def small() -> Content:
    """Two tensors and three keys, enough for the reader."""
    return Content(
        {
            "general.architecture": Value(files.STRING, "glm5next"),
            "glm5next.block_count": Value(files.U32, 1),
            "names": Value(files.STRING, ["a", "bc"]),
        },
        [Tensor("one", (32, 2), 0, bytes(256)), Tensor("two", (32,), 8, bytes(34))],
    )


def packed(**changes: object) -> bytes:
    content = small()
    for name, value in changes.items():
        setattr(content.tensors[0], name, value)
    return files.pack(content)


def with_key(kind: int, value: object, key: str = "odd") -> bytes:
    content = small()
    content.metadata[key] = Value(kind, value)
    return files.pack(content)


def with_raw_value(raw: bytes) -> bytes:
    """Append a key whose type and value are given as bytes."""
    base = files.pack(small())
    marker = struct.pack("<Q", 5) + b"names"
    key = struct.pack("<Q", 3) + b"odd" + raw
    return patched(base.replace(marker, key + marker), 16, struct.pack("<Q", 4))


def patched(raw: bytes, at: int, new: bytes) -> bytes:
    return raw[:at] + new + raw[at + len(new) :]


def doubled_tensor() -> bytes:
    content = small()
    content.tensors[1].name = "one"
    return files.pack(content)


def second_at(offset: int) -> bytes:
    content = small()
    content.tensors[1].offset = offset
    return files.pack(content)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


DAMAGED: dict[str, tuple[Make, str]] = {
    "empty": (lambda: b"", "is empty"),
    "ten bytes": (lambda: packed()[:10], "cut short"),
    "not gguf": (lambda: b"PK\x03\x04" + bytes(60), "not a GGUF file"),
    "lfs pointer": (lambda: b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
    "web page": (lambda: b"<!DOCTYPE html>" + bytes(60), "web page"),
    "version 1": (lambda: patched(packed(), 4, b"\x01\0\0\0"), "GGUF version 1"),
    "version 4": (lambda: patched(packed(), 4, b"\x04\0\0\0"), "accepted versions: 2 and 3"),
    "big endian": (lambda: patched(packed(), 4, b"\0\0\0\x03"), "big-endian"),
    "2^60 tensors": (lambda: patched(packed(), 8, u64(1 << 60)), "claims 11529215046.* tensors"),
    "4,000 tensors": (lambda: patched(packed(), 8, u64(4000)), "claims 4000 tensors, but"),
    "2^60 keys": (lambda: patched(packed(), 16, u64(1 << 60)), "claims 11529215046.* keys"),
    "one key too many": (lambda: patched(packed(), 16, u64(4)), "damaged header"),
    "key of 2^62 bytes": (lambda: patched(packed(), 24, u64(1 << 62)), "bytes long"),
    "key without a name": (lambda: patched(packed(), 24, u64(0)), "key 0 is 0 bytes long"),
    "key that is no text": (lambda: patched(packed(), 32, b"\xff\xfe"), "not UTF-8"),
    "double key": (lambda: packed().replace(b"glm5next.block_count", b"general.architecture"),
        "appears twice"),
    "value type 99": (lambda: with_raw_value(struct.pack("<I", 99)), "unknown value type 99"),
    "element type 99": (lambda: with_raw_value(struct.pack("<IIQ", 9, 99, 1)), "element type 99"),
    "array of arrays": (lambda: with_raw_value(struct.pack("<IIQ", 9, 9, 1)), "array of arrays"),
    "2^61 numbers": (lambda: with_raw_value(struct.pack("<IIQ", 9, 4, 1 << 61)), "claims"),
    "9999 numbers": (lambda: with_raw_value(struct.pack("<IIQ", 9, 4, 9999)), "needs 39996 bytes"),
    "2^61 strings": (lambda: with_raw_value(struct.pack("<IIQ", 9, 8, 1 << 61)), "claims"),
    "string past the end": (lambda: with_raw_value(
        struct.pack("<IIQQ", 9, 8, 1, 1 << 40)), "runs past the end"),
    "string of 2^64 - 1": (lambda: with_raw_value(
        struct.pack("<IIQQQ", 9, 8, 2, (1 << 64) - 1, 1)), "runs past the end"),
    "text of 2^63": (lambda: with_raw_value(struct.pack("<IQ", 8, 1 << 63)), "bytes long"),
    "text past the end": (lambda: with_raw_value(struct.pack("<IQ", 8, 9999)), "the file ends"),
    "text that is none": (lambda: with_key(files.STRING, b"\xc3("), "not UTF-8"),
    "truth value 2": (lambda: with_raw_value(struct.pack("<IB", 7, 2)), "truth value"),
    "alignment 24": (lambda: with_key(files.U32, 24, "general.alignment"), "power of two"),
    "alignment 0": (lambda: with_key(files.U32, 0, "general.alignment"), "power of two"),
    "alignment as text": (lambda: with_key(files.STRING, "a", "general.alignment"), "power of"),
    "no dimension": (lambda: packed(ne=()), "0 dimensions"),
    "five dimensions": (lambda: packed(ne=(1, 1, 1, 1, 1)), "5 dimensions"),
    "a dimension of 0": (lambda: packed(ne=(32, 0)), r"shape \[32, 0\]"),
    "huge dimensions": (lambda: packed(ne=((1 << 64) - 1, 1 << 63)), "cut short"),
    "rows that fill no block": (lambda: packed(type_id=10), "do not fill Q2_K blocks of 256"),
    "misaligned": (lambda: packed(offset=8), "not aligned to 32"),
    "overlap": (lambda: second_at(224), "overlaps"),
    "the same place": (lambda: second_at(0), "overlaps"),
    "past the end": (lambda: patched_offset(1 << 40), "cut short"),
    "offset 2^64 - 32": (lambda: patched_offset((1 << 64) - 32), "cut short"),
    "unknown type past the end": (lambda: patched_offset(1 << 40, 200), "cut short"),
    "cut short": (lambda: packed()[:-64], "is cut short"),
    "double tensor": (doubled_tensor, "'one' appears twice"),
    "no architecture": (lambda: packed().replace(b"general.arch", b"general.arxx"), "does not say"),
    "other architecture": (lambda: packed().replace(b"\x08\0\0\0\0\0\0\0glm5next",
        b"\x08\0\0\0\0\0\0\0llama\x1b[m"), r"'llama\\x1b\[m'.*accepted: glm5next, glm5-next"),
}  # fmt: skip


def patched_offset(offset: int, type_id: int = 0) -> bytes:
    raw = packed()
    at = raw.index(struct.pack("<Q", 3) + b"one") + 11 + 4 + 16
    return patched(raw, at, struct.pack("<IQ", type_id, offset))


def test_the_undamaged_file_opens(tmp_path: Path) -> None:
    path = tmp_path / "good.gguf"
    path.write_bytes(packed())
    with open_model(path) as file:
        assert list(file.tensors) == ["one", "two"]
        assert list(file.metadata["names"]) == ["a", "bc"]
    path.write_bytes(with_raw_value(struct.pack("<IB", 7, 1)))
    with open_model(path) as file:
        assert file.metadata["odd"] is True
    path.write_bytes(patched_offset(0))
    open_model(path).close()


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused_by_name_at_once(name: str, tmp_path: Path) -> None:
    make, phrase = DAMAGED[name]
    path = tmp_path / "bad.gguf"
    path.write_bytes(make())
    start = time.process_time()
    with pytest.raises(ModelFileError) as caught:
        open_model(path)
    assert time.process_time() - start < 1
    text = " ".join(caught.value.lines())
    assert path.name in text
    assert re.search(phrase, text), text
    assert "\x1b" not in text
    assert all(len(line) < 400 for line in caught.value.lines())


def test_a_vision_projector_is_called_one(tmp_path: Path) -> None:
    content = small()
    content.metadata["general.architecture"] = Value(files.STRING, "clip")
    path = tmp_path / "mmproj.gguf"
    path.write_bytes(files.pack(content))
    with pytest.raises(ModelFileError) as caught:
        open_model(path)
    assert "vision projector" in caught.value.why


@pytest.mark.parametrize("spelling", ["glm5next", "glm5-next", "GLM5_Next", "glm5_next"])
def test_every_spelling_of_the_architecture_is_accepted(spelling: str, tmp_path: Path) -> None:
    content = small()
    content.metadata["general.architecture"] = Value(files.STRING, spelling)
    path = tmp_path / "model.gguf"
    path.write_bytes(files.pack(content))
    with open_model(path) as file:
        assert file.get("block_count") == 1
        assert file.get("absent", "default") == "default"


@pytest.mark.parametrize(
    ("kind", "count", "phrase"),
    [
        (files.BOOL, 1 << 33, "claims 8589934592 numbers"),
        (files.STRING, (1 << 22) + 1, "claims 4194305 strings"),
        (files.U8, 1 << 24, None),
    ],
)
def test_counts_are_bounded_even_where_the_file_is_large_enough(
    kind: int, count: int, phrase: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "sparse.gguf"
    content = small()
    content.tensors = []
    raw = files.pack(content)
    raw = patched(raw, 16, u64(4)) + u64(3) + b"odd" + struct.pack("<IIQ", 9, kind, count)
    path.write_bytes(raw)
    os.truncate(path, 12 << 30)
    start = time.process_time()
    if phrase is None:
        open_model(path).close()
    else:
        with pytest.raises(ModelFileError) as caught:
            open_model(path)
        assert phrase in caught.value.why
    assert time.process_time() - start < 1


def test_a_path_that_no_system_has_is_refused() -> None:
    with pytest.raises(ModelFileError):
        open_model(Path("a\0b.gguf"))
    with pytest.raises(ModelFileError):
        open_model(Path("x" * 5000))
