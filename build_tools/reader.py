"""Compile the library that reads experts: localglm/experts/csrc, one for all instruction sets.

Writes only below localglm/experts/_native unless another folder is given. A stamp beside the
library holds the hash of everything that went into it, as for the CPU library.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from build_tools import native

PACKAGE = native.ROOT / "localglm" / "experts"
SOURCE = PACKAGE / "csrc"
NATIVE = PACKAGE / "_native"


def build(target: str | None = None, out_dir: Path | None = None) -> Path:
    """Build the library for ``target`` (default: this machine); return its path in ``out_dir``."""
    triple = native.host_target() if target is None else target
    if triple not in native.TARGETS:
        known = ", ".join(native.TARGETS)
        raise native.BuildError(f"unknown target {triple}; known: {known}")
    chosen = native.TARGETS[triple]
    place = NATIVE if out_dir is None else out_dir
    library = place / chosen.library.replace("cpu", "reader")
    stamp = library.with_name(library.name + ".stamp")
    digest = _digest(chosen)
    if library.exists() and stamp.exists() and stamp.read_text() == digest:
        return library
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=place) as scratch:
        fresh, note = Path(scratch) / library.name, Path(scratch) / "stamp"
        _compile(chosen, fresh)
        fresh.replace(library)
        note.write_text(digest)
        note.replace(stamp)
    return library


def _digest(target: native.Target) -> str:
    state = hashlib.sha256(repr((target.triple, native.FLAGS)).encode())
    for path in (Path(__file__), *sorted(SOURCE.glob("*.[ch]"))):
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def _compile(target: native.Target, library: Path) -> None:
    pic = ("-fPIC",) if target.position_independent else ()
    processor = f"-mcpu={target.processors[0][1]}"
    sources = [str(source) for source in sorted(SOURCE.glob("*.c"))]
    native.zig(
        [*native.FLAGS, processor, *pic, "-shared", "-s", *sources, "-o", str(library)], target
    )
