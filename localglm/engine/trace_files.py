"""The files of a trace: ids and recorded arrays in, an archive out; all untrusted or fallible."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from localglm.arrays import AnyArray
from localglm.errors import UsageError
from localglm.model.geometry import Geometry

_LARGEST_IDS_FILE = 64 << 20
_LARGEST_ID = (1 << 31) - 1


def read_ids(path: Path) -> tuple[int, ...]:
    """Read token ids from a JSON file: a list, or an object with "ids" or "prompt".

    Raises: UsageError when it is anything else.
    """
    try:
        found = json.loads(_limited_text(path))
    except (OSError, ValueError, RecursionError) as err:
        raise UsageError(
            f"cannot read ids from {path}", why=str(err), try_="a JSON list such as [12, 7, 99]"
        ) from err
    if isinstance(found, dict):
        found = found.get("ids", found.get("prompt"))
    ok = isinstance(found, list) and found
    if not ok or not all(type(i) is int and 0 <= i <= _LARGEST_ID for i in found):
        raise UsageError(
            f"{path} holds no token ids",
            why=f'expected whole numbers from 0 to {_LARGEST_ID}, as a list or under "ids"',
            try_="a JSON list such as [12, 7, 99]",
        )
    return tuple(found)


def _limited_text(path: Path) -> str:
    if path.stat().st_size > _LARGEST_IDS_FILE:
        raise ValueError(f"it is larger than {_LARGEST_IDS_FILE >> 20} MiB")
    return path.read_text(encoding="utf-8-sig")


def read_feed(path: Path, ids: tuple[int, ...]) -> dict[str, AnyArray]:
    """Load recorded arrays, no pickles; they must belong to the same prompt.

    Raises: UsageError when the file is no such archive or its prompt differs.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except OSError as err:
        raise _bad_feed(path, err.strerror or str(err)) from err
    except (ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as err:
        raise _bad_feed(path, "it is not an archive of plain arrays") from err
    prompt = arrays.get("prompt")
    if prompt is None or prompt.ndim != 1 or tuple(prompt.tolist()) != ids:
        raise UsageError(
            f"{path} was recorded for another prompt",
            why="its array 'prompt' differs from the ids given",
            try_="pass the archive's own prompt with --ids",
        )
    return arrays


def _bad_feed(path: Path, why: str) -> UsageError:
    return UsageError(
        f"cannot read recorded arrays from {path}",
        why=why,
        try_="an archive that trace has written",
    )


def check_feed(feed: Mapping[str, AnyArray], geometry: Geometry, tokens: int) -> None:
    """Check that every array a trace would feed back fits the model.

    Raises: UsageError naming the array, its shape and the one expected.
    """
    expected = {
        "attn_norm": ((tokens, geometry.width), "f"),
        "ffn_norm": ((tokens, geometry.width), "f"),
        "hidden": ((tokens, geometry.width), "f"),
        "input": ((tokens, geometry.width), "f"),
        "attn_out": ((tokens, geometry.width), "f"),
        "idx_selected": ((tokens, tokens), "b"),
        "router_ids": ((tokens, geometry.moe.used), "i"),
    }
    for name, array in feed.items():
        wanted = expected.get(name.rsplit(".", 1)[-1])
        if wanted is None:
            continue
        shape, kind = wanted
        if array.shape != shape or array.dtype.kind != kind:
            raise UsageError(
                f"the recorded array {name} does not fit this model",
                why=f"it is {array.dtype} {list(array.shape)}, expected {list(shape)}",
                try_="feed an archive recorded from this model and prompt",
            )
        if (
            kind == "i"
            and array.size
            and not 0 <= array.min() <= array.max() < geometry.moe.experts
        ):
            raise UsageError(
                f"the recorded array {name} names experts that do not exist",
                why=f"this model has experts 0 to {geometry.moe.experts - 1}",
                try_="feed an archive recorded from this model and prompt",
            )


def check_output(path: Path) -> Path:
    """Return where an archive will be written, links followed, before anything is computed.

    Raises: UsageError when nothing can be written there.
    """
    why = None
    target = path.resolve() if path.name else path
    if not path.name or target.is_dir():
        why = "it is a folder"
    elif target.exists() and not target.is_file():
        why = "it is no regular file"
    elif not target.parent.is_dir():
        why = f"the folder {target.parent} does not exist"
    elif not os.access(target.parent, os.W_OK):
        why = f"the folder {target.parent} cannot be written"
    if why is not None:
        raise UsageError(f"cannot write {path}", why=why, try_="choose another file with --out")
    return target


def save(target: Path, arrays: Mapping[str, AnyArray]) -> None:
    """Write the archive under a name of its own and move it into place.

    Raises: UsageError when it cannot be written.
    """
    part: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as out:
            np.savez(out, **arrays)  # type: ignore[arg-type]
        part.replace(target)
    except OSError as err:
        if part is not None:
            part.unlink(missing_ok=True)
        raise UsageError(
            f"cannot write {target}", why=err.strerror or str(err), try_="choose another --out"
        ) from err
