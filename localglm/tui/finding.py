"""What the first screen shows: the machine, what computes and why, and models on disk."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localglm import paths
from localglm.errors import ModelFileError
from localglm.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be opened."""

    name: str
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on this machine."""

    device: str
    backend: str
    why: str
    memory: str


def models(folders: Iterable[Path]) -> list[Model]:
    """Return the models in the folders, a split file once, and the demo at the end."""
    out: dict[Path, Model] = {}
    for folder in folders:
        for file in _files(folder):
            part = file.stem.rpartition("-of-")
            if part[1] and not part[0].endswith("-00001"):
                continue
            try:
                out[file.resolve()] = Model(file.name, file, file.stat().st_size)
            except OSError:
                continue
    found = sorted(out.values(), key=lambda model: -model.size)[:_MOST_FILES]
    try:
        demo = paths.demo_model()
    except ModelFileError:  # a build without it still finds what the user has
        return found
    return [*found, Model("demo", demo, demo.stat().st_size)]


def _files(folder: Path) -> list[Path]:
    try:
        return [*folder.glob("*.gguf"), *folder.glob("*/*.gguf")]
    except OSError:
        return []


def usual_folders() -> list[Path]:
    """Return where models usually lie."""
    return [Path.cwd(), paths.data_folder() / "models", Path.home() / "models"]


def this_machine() -> Found:
    """Survey this machine; takes seconds."""
    import psutil  # noqa: PLC0415 - not needed before the screen is up

    from localglm.devices.match import choose  # noqa: PLC0415
    from localglm.devices.merge import machine_of  # noqa: PLC0415
    from localglm.devices.survey import survey  # noqa: PLC0415
    from localglm.engine.devices import BACKENDS  # noqa: PLC0415
    from localglm.errors import LocalGlmError  # noqa: PLC0415
    from localglm.settings.load import environment  # noqa: PLC0415

    memory = psutil.virtual_memory()
    room = f"{size_text(memory.total)}, {size_text(memory.available)} free"
    processor = platform.processor() or platform.machine()
    try:
        choice = choose(machine_of(survey(environment())), BACKENDS, "auto", "auto")
    except LocalGlmError as error:
        return Found(processor, "none", f"{error.what}: {error.why}", room)
    device = choice.card.name if choice.card is not None else processor
    return Found(device, choice.backend, choice.reason, room)
