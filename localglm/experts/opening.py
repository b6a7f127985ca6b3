"""From a surveyed file to a home for its experts."""

from __future__ import annotations

from pathlib import Path

from localglm.experts.drive import drive_depth
from localglm.experts.layout import expert_layout
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
    layout = expert_layout(found)
    notes: tuple[str, ...] = ()
    if depth is None:
        largest = max(file.paths, key=lambda path: path.stat().st_size)
        measured = drive_depth(largest, data_folder)
        depth, notes = measured.depth, measured.notes
    return StreamedHome(layout, file.paths, memory, StreamedOptions(depth, notes=notes))
