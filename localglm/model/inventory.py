"""The whole-set check: every needed tensor is there, with its shape and a type we compute.

``survey`` runs before anything is loaded and touches no tensor data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from localglm.errors import ModelFileError
from localglm.gguf import ModelFile, TensorInfo
from localglm.gguf.cursor import shown
from localglm.gguf.ggml_types import accepted_types
from localglm.model.geometry import Geometry
from localglm.model.read_geometry import geometry_and_notes
from localglm.model.roles import Expected, expected_draft_tensors, expected_tensors

_LISTED = 4  # tensors named in a message
_VISION = ("v.", "mm.", "vision", "model.visual", "visual.", "clip.", "mmproj.")


@dataclass(frozen=True, slots=True)
class Found:
    """A tensor the model uses: what was expected, and what the file has."""

    expected: Expected
    info: TensorInfo


@dataclass(frozen=True, slots=True)
class Survey:
    """A file that passed: tensors by their usual names; ``geometry.draft`` None: no drafting."""

    geometry: Geometry
    tensors: Mapping[str, Found]
    ignored: tuple[TensorInfo, ...]
    notes: tuple[str, ...]


def survey(file: ModelFile) -> Survey:
    """Check the whole set against the geometry in its metadata.

    Raises: ModelFileError naming missing tensors, wrong shapes or types localglm does not compute.
    """
    geometry, notes = geometry_and_notes(file)
    found = _match(file, expected_tensors(geometry))
    draft, draft_notes = _draft(file, geometry)
    if geometry.draft is not None and not draft:
        geometry = replace(geometry, draft=None)
    tensors = {**found, **draft}
    used = {item.info.name for item in tensors.values()}
    ignored = tuple(info for name, info in file.tensors.items() if name not in used)
    tied = ["output.weight is missing: the embedding table serves as output head"]
    every_note = (
        *file.notes,
        *notes,
        *draft_notes,
        *(tied if "output.weight" not in found else ()),
        *_ignored_notes(ignored),
    )
    return Survey(geometry, MappingProxyType(tensors), ignored, every_note)


def _match(file: ModelFile, wanted: Iterable[Expected]) -> dict[str, Found]:
    """Find every wanted tensor, or report all faults of the first kind there is."""
    found: dict[str, Found] = {}
    missing: list[str] = []
    for expected in wanted:
        info = _look_up(file, expected)
        if info is not None:
            found[expected.name] = Found(expected, info)
        elif not expected.optional:
            missing.append(expected.name)
    if missing:
        raise ModelFileError(
            f"{file.paths[0].name} lacks {_some(missing)}",
            why="the model described by its metadata needs them",
            try_="download the whole set again, or use another file of the model",
        )
    _check_shapes(file, found.values())
    _check_types(file, found.values())
    return found


def _look_up(file: ModelFile, expected: Expected) -> TensorInfo | None:
    info = file.tensors.get(expected.name)
    if info is None and expected.other is not None:
        info = file.tensors.get(expected.other)
    return info


def _check_shapes(file: ModelFile, found: Iterable[Found]) -> None:
    wrong = [item for item in found if _plain(item.info.shape) != _plain(item.expected.shape)]
    if not wrong:
        return
    item = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    raise ModelFileError(
        f"{file.paths[0].name}: {item.info.name} has the shape {_ne(item.info.shape)}{more}",
        why=f"the metadata asks for {_ne(item.expected.shape)} (innermost first)",
        try_="use another file of the model",
    )


def _check_types(file: ModelFile, found: Iterable[Found]) -> None:
    refused = [item.info for item in found if item.info.type is None]
    if refused:
        more = f" (and {len(refused) - 1} more tensors)" if len(refused) > 1 else ""
        raise ModelFileError(
            f"{file.paths[0].name}: {refused[0].name} is stored as {refused[0].type_name}{more}",
            why=f"accepted types: {accepted_types()}",
            try_="use a file quantised to one of these types",
        )


def _plain(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Drop all 1s: they change no layout, and tools differ in writing them."""
    return tuple(size for size in shape if size != 1)


def _ne(shape: tuple[int, ...]) -> list[int]:
    return list(shape[::-1])


def _some(names: list[str]) -> str:
    listed = ", ".join(names[:_LISTED])
    rest = len(names) - _LISTED
    if rest > 0:
        listed += f" and {rest} more"
    return f"{'a tensor' if len(names) == 1 else f'{len(names)} tensors'}: {listed}"


def _draft(file: ModelFile, geometry: Geometry) -> tuple[dict[str, Found], list[str]]:
    """Find the draft block; without a usable one the model runs, but does not draft."""
    if geometry.draft is None:
        return {}, []
    wanted = expected_draft_tensors(geometry)
    found = {e.name: Found(e, info) for e in wanted if (info := _look_up(file, e)) is not None}
    missing = [e.name for e in wanted if e.name not in found and not e.optional]
    if missing:
        return {}, [f"the draft block lacks {_some(missing)}: no drafting"]
    _check_shapes(file, found.values())
    for item in found.values():
        if item.info.type is None:
            reason = f"{item.info.name} is stored as {item.info.type_name}"
            return {}, [f"{reason}, which localglm does not compute: no drafting"]
    return found, []


def _ignored_notes(ignored: tuple[TensorInfo, ...]) -> list[str]:
    vision = [info for info in ignored if info.name.startswith(_VISION)]
    others = [info for info in ignored if not info.name.startswith(_VISION)]
    notes = []
    for kind, infos in (("vision", vision), ("other", others)):
        if infos:
            names = ", ".join(shown(info.name) for info in infos[:_LISTED])
            more = ", ..." if len(infos) > _LISTED else ""
            notes.append(f"{len(infos)} {kind} tensors are ignored: {names}{more}")
    return notes
