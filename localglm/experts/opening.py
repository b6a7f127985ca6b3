"""From a surveyed file to a home for its experts."""

from __future__ import annotations

from pathlib import Path

from localglm.experts.drive import drive_depth
from localglm.experts.layout import PARTS, expert_layout
from localglm.experts.mapped import MappedHome
from localglm.experts.streamed import StreamedHome, StreamedOptions
from localglm.gguf import ModelFile
from localglm.model.inventory import Survey


def open_home(
    file: ModelFile, found: Survey, *, memory: int, depth: int | None = None,
    data_folder: Path | None = None,
) -> StreamedHome:  # fmt: skip
    """Open a home that keeps as many experts as ``memory`` bytes hold and reads the others.

    Without ``depth`` the drive is measured for less than two seconds, or what ``data_folder``
    remembers of it is used. The files are opened anew; ``file`` may be closed.
    Raises: MemoryShortError below ``minimum_memory``; ModelFileError when a file cannot be opened.
    """
    depth, notes = _depth(file, depth, data_folder)
    options = StreamedOptions(depth, notes=notes)
    return StreamedHome(expert_layout(found), file.paths, memory, options)


def open_mapped_home(
    file: ModelFile, found: Survey, *, depth: int | None = None, data_folder: Path | None = None
) -> MappedHome:
    """Open a home that lends the mapped experts of ``file`` once they are in the system's cache.

    For files that fit into memory and were not read yet; depth as for ``open_home``.
    Raises: ModelFileError when a file cannot be opened.
    """
    layout = expert_layout(found)
    depth, notes = _depth(file, depth, data_folder)
    stacks = {}
    for layer in layout.layers:
        names = [found.tensors[f"blk.{layer}.ffn_{part}_exps.weight"].info.name for part in PARTS]
        gate, up, down = (file.data(name) for name in names)
        stacks[layer] = (gate, up, down)
    return MappedHome(layout, file.paths, stacks, StreamedOptions(depth, notes=notes))


def _depth(
    file: ModelFile, depth: int | None, data_folder: Path | None
) -> tuple[int, tuple[str, ...]]:
    """Return the depth as asked for, or that of the drive with the largest file, and notes."""
    if depth is not None:
        return depth, ()
    largest = max(file.paths, key=lambda path: path.stat().st_size)
    measured = drive_depth(largest, data_folder)
    return measured.depth, measured.notes
