"""Noticing that a model file changed while it is open."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localglm.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_CHECK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class FileMark:
    """What tells a file from one that took its place."""

    size: int
    modified_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> FileMark:
        """Read the mark.

        Raises: OSError when the file is not there.
        """
        found = os.stat(path)  # noqa: PTH116 - one call, often
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


@dataclass(slots=True)
class FileWatch:
    """Notices that model files changed under us; looks at most a few times a second."""

    marks: Mapping[Path, FileMark]
    looked: float = field(default=0.0)

    def verify(self, *, at_once: bool = False) -> None:
        """Compare every file with its mark, unless that was done a moment ago.

        Raises: ModelFileError naming the file and what changed.
        """
        now = time.monotonic()
        if not at_once and now - self.looked < _CHECK_SECONDS:
            return
        for path, mark in self.marks.items():
            _compare(path, mark)
        self.looked = now


def _compare(path: Path, mark: FileMark) -> None:
    try:
        found = FileMark.of(path)
    except OSError as error:
        raise ModelFileError(
            f"the model file {path} cannot be reached any more",
            why=f"{error.strerror}: it was removed or renamed while the model was open",
            try_="put the file back and repeat the request",
        ) from error
    if found.size < mark.size:
        raise ModelFileError(
            f"the model file {path} was truncated while the model was open",
            why=f"it had {mark.size} bytes and has {found.size}",
            try_="copy or download the file again, then repeat the request",
        )
    if found != mark:
        raise ModelFileError(
            f"the model file {path} was changed while the model was open",
            why="its size, time or identity on the disk is another",
            try_="repeat the request; the file is opened again",
        )
