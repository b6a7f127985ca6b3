"""Compare what the files of a set say about the split they come from.

The number in the metadata counts from 0 (some writers: from 1), the one in the name from 1; the
tensor count is that of the whole set; only the first file needs to hold the metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from localglm.errors import ModelFileError
from localglm.gguf.header import Header, TensorInfo


def check_split(paths: Sequence[Path], headers: Sequence[Header]) -> None:
    """Refuse files that do not come from one split.

    Raises: ModelFileError with the totals and file names that disagree.
    """
    _same(paths, headers, "split.count", "files")
    _same(paths, headers, "split.tensors.count", "tensors")
    _check_count(paths, headers)
    _check_order(paths, headers)


def check_total(paths: Sequence[Path], headers: Sequence[Header]) -> None:
    """Refuse a set that holds another number of tensors than it says.

    Raises: ModelFileError with both numbers.
    """
    total = next(
        (n for n in (_number(p, h, "split.tensors.count") for p, h in _pairs(paths, headers)) if n),
        None,
    )
    held = sum(len(header.tensors) for header in headers)
    if total is not None and total != held:
        raise ModelFileError(
            f"the set of {paths[0].name} holds {held} tensors, but should hold {total}",
            why=f"split.tensors.count is {total}: the files are not one complete split",
            try_="download the set again",
        )


def merge_tensors(paths: Sequence[Path], headers: Sequence[Header]) -> dict[str, TensorInfo]:
    """Join the tensor lists of all files.

    Raises: ModelFileError when two files hold the same tensor.
    """
    tensors: dict[str, TensorInfo] = {}
    for header in headers:
        for info in header.tensors:
            if info.name in tensors:
                raise ModelFileError(
                    f"two files hold the tensor {info.name!r}",
                    why=f"{paths[tensors[info.name].shard].name} and {paths[info.shard].name}",
                    try_="download the set again",
                )
            tensors[info.name] = info
    return tensors


def merge_metadata(paths: Sequence[Path], headers: Sequence[Header]) -> dict[str, object]:
    """Join the metadata; the first file wins, and no later one may name another architecture."""
    metadata = dict(headers[0].metadata)
    for path, header in _pairs(paths[1:], headers[1:]):
        here, first = (
            header.metadata.get("general.architecture"),
            metadata.get("general.architecture"),
        )
        if here is not None and first is not None and here != first:
            raise ModelFileError(
                f"{paths[0].name} and {path.name} hold different models",
                why=f"general.architecture is {first!r} in one and {here!r} in the other",
                try_="keep each model in a folder of its own",
            )
        metadata = {**header.metadata, **metadata}
    return metadata


def _pairs(paths: Sequence[Path], headers: Sequence[Header]) -> list[tuple[Path, Header]]:
    return list(zip(paths, headers, strict=True))


def _number(path: Path, header: Header, key: str) -> int | None:
    value = header.metadata.get(key)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise ModelFileError(
            f"{path.name} has a damaged header",
            why=f"{key} is not a count",
            try_="download the file again",
        )
    return value


def _same(paths: Sequence[Path], headers: Sequence[Header], key: str, unit: str) -> None:
    """Refuse two files whose totals disagree."""
    said = [(path, _number(path, header, key)) for path, header in _pairs(paths, headers)]
    known = [(path, number) for path, number in said if number]
    for path, number in known[1:]:
        if number != known[0][1]:
            raise ModelFileError(
                f"{known[0][0].name} and {path.name} come from different splits",
                why=f"one belongs to a set of {known[0][1]} {unit}, the other to a set of {number}",
                try_="keep each model in a folder of its own",
            )


def _check_count(paths: Sequence[Path], headers: Sequence[Header]) -> None:
    for path, header in _pairs(paths, headers):
        count = _number(path, header, "split.count")
        if not count or count == len(paths):
            continue
        if len(paths) == 1:
            raise ModelFileError(
                f"{path.name} is one shard of a set of {count} files",
                why="its name does not say which one, so the others cannot be found",
                try_=f"give the files their names back: ...-00001-of-{count:05d}.gguf and so on",
            )
        raise ModelFileError(
            f"{path.name} belongs to a set of {count} files",
            why=f"but its name says {len(paths)}",
            try_="give the files their names back, or download the set again",
        )


def _check_order(paths: Sequence[Path], headers: Sequence[Header]) -> None:
    """Refuse numbers inside that count neither from 0 nor from 1 in the order of the names."""
    if len(paths) == 1:
        return
    numbers = [_number(path, header, "split.no") for path, header in _pairs(paths, headers)]
    starts = {n - place for place, n in enumerate(numbers) if n is not None}
    if starts <= {0} or starts == {1}:
        return
    listed = ", ".join(
        f"{path.name} is number {n}"
        for path, n in zip(paths, numbers, strict=True)
        if n is not None
    )
    raise ModelFileError(
        f"the files of {paths[0].name} are out of order",
        why=f"inside, {listed}",
        try_="give the files their names back, or download the set again",
    )
