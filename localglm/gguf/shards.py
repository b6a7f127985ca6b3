"""From what the user typed (a file, any shard, a folder) to the ordered files of one model set.

Works on names alone; ``splits`` compares what the files say about themselves.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localglm.errors import ModelFileError

_SHARD_NAME = re.compile(
    r"(?P<base>.+)-(?P<number>\d{1,9})-of-(?P<total>\d{1,9})\.gguf", re.IGNORECASE | re.DOTALL
)
_LISTED = 12  # names in a message


@dataclass(frozen=True, slots=True)
class SetEntry:
    """Files that belong together by name. ``total`` is None for a file that is no shard."""

    base: str
    total: int | None
    files: tuple[tuple[int, Path], ...]

    @property
    def label(self) -> str:
        """Name of the first file, with the count of files when there are several."""
        first = min(self.files)[1].name
        if self.total is None:
            return first
        return f"{first} ({len(self.files)} of {self.total} files)"


def locate(path: Path) -> tuple[Path, ...]:
    """Return the files of the set that ``path`` names, first shard first.

    Raises: ModelFileError when nothing is there, a folder is ambiguous, or shards are missing.
    """
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        return _complete(_only_entry(path), path)
    if not stat.S_ISREG(mode):
        raise ModelFileError(
            f"{path} is not a regular file",
            why="a model is read from a file, a shard of a split file, or a folder",
            try_="give the path of a .gguf file",
        )
    match = _SHARD_NAME.fullmatch(path.name)
    if match is None:
        return (path,)
    siblings = [*_gguf_files(path.parent), path]
    wanted = (match["base"], int(match["total"]))
    entries = group(dict.fromkeys(siblings))
    entry = next(e for e in entries if (e.base, e.total) == wanted)
    return _complete(entry, path.parent)


def group(files: Iterable[Path]) -> list[SetEntry]:
    """Sort files into sets: one entry per split, one per file that is no shard."""
    found: dict[tuple[str, int | None], list[tuple[int, Path]]] = {}
    for file in files:
        match = _SHARD_NAME.fullmatch(file.name)
        if match is None:
            found[file.name, None] = [(1, file)]
        else:
            key = (match["base"], int(match["total"]))
            found.setdefault(key, []).append((int(match["number"]), file))
    return [SetEntry(base, total, tuple(sorted(files))) for (base, total), files in found.items()]


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError as error:
        raise _os_error(path, error) from None
    except ValueError as error:
        raise ModelFileError(f"{path!r} is no path", why=str(error)) from None


def _os_error(path: Path, error: OSError) -> ModelFileError:
    try_ = "check the path and its spelling"
    if isinstance(error, PermissionError):
        try_ = "give your user the right to read it"
    elif isinstance(error, FileNotFoundError) and path.is_symlink():
        try_ = "the link leads nowhere: download the file again"
    return ModelFileError(f"{path} cannot be read", why=error.strerror or str(error), try_=try_)


def _gguf_files(folder: Path) -> list[Path]:
    try:
        return sorted(
            file
            for file in folder.iterdir()
            if file.suffix.casefold() == ".gguf" and not file.name.startswith(".")
        )
    except OSError as error:
        raise _os_error(folder, error) from None


def _only_entry(folder: Path) -> SetEntry:
    """Return the one model set of a folder. A vision projector (mmproj) is no model."""
    entries = [e for e in group(_gguf_files(folder)) if "mmproj" not in e.base.casefold()]
    if len(entries) == 1:
        return entries[0]
    if not entries:
        raise ModelFileError(
            f"{folder} holds no .gguf model",
            why=_below(folder),
            try_="give the path of a .gguf file",
        )
    labels = [entry.label for entry in entries]
    listed = labels[:_LISTED] + ["..."] * (len(labels) > _LISTED)
    raise ModelFileError(
        f"{folder} holds {len(entries)} models",
        why="; ".join(listed),
        try_=f"name one of them, for example {min(entries[0].files)[1]}",
    )


def _below(folder: Path) -> str:
    """Name the folders one level down that hold GGUF files."""
    below = [
        child.name
        for child in sorted(folder.iterdir())
        if child.is_dir() and any(f.suffix.casefold() == ".gguf" for f in _readable(child))
    ]
    return (
        f"but these folders in it do: {', '.join(below[:_LISTED])}"
        if below
        else "no such file in it"
    )


def _readable(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _complete(entry: SetEntry, folder: Path) -> tuple[Path, ...]:
    """Return the files of an entry in order, or name the shards that are not there."""
    if entry.total is None:
        return (entry.files[0][1],)
    present: dict[int, Path] = {}
    for number, file in entry.files:
        if number in present:
            raise ModelFileError(
                f"{present[number].name} and {file.name} are the same shard",
                why=f"both names say shard {number} of {entry.total}",
                try_="remove one of the two",
            )
        present[number] = file
    first = 0 if 0 in present else 1
    if len(present) == entry.total and max(present) == first + entry.total - 1:
        return tuple(file for _, file in entry.files)
    raise _incomplete(entry, present, first, folder)


def _incomplete(
    entry: SetEntry, present: dict[int, Path], first: int, folder: Path
) -> ModelFileError:
    total = entry.total or 0
    sample = entry.files[0][1].name
    expected = range(first, first + total)
    missing = [n for n in expected[: len(present) + _LISTED] if n not in present][:_LISTED]
    names = [_shard_name(sample, number) for number in missing]
    strangers = [file.name for number, file in entry.files if number not in expected]
    if strangers:
        return ModelFileError(
            f"{strangers[0]} cannot belong to a set of {total} files",
            why=f"shards are numbered {first} to {first + total - 1}",
            try_="download the set again",
        )
    why = f"missing: {', '.join(names)}"
    why += f" and {total - len(present) - len(names)} more" * (total > len(present) + len(names))
    others = [
        e for e in group(_gguf_files(folder)) if e.base == entry.base and e.total != entry.total
    ]
    if others:
        why += f"; {folder} also holds {others[0].label}, of another split"
    return ModelFileError(
        f"the set of {sample} is incomplete: {len(present)} of {total} files are there",
        why=why,
        try_="download the missing files into the same folder",
    )


def _shard_name(sample: str, number: int) -> str:
    """Spell the name of another shard like ``sample``, with as many digits."""
    match = _SHARD_NAME.fullmatch(sample)
    assert match is not None
    start, stop = match.span("number")
    return f"{sample[:start]}{number:0{stop - start}d}{sample[stop:]}"
