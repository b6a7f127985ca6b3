"""From the path of a model file to everything a request needs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil

from localglm.engine.bare_text import BareText
from localglm.engine.checks import check_context
from localglm.engine.devices import DeviceChoice, open_device, processors
from localglm.engine.dialogue import Dialogue
from localglm.engine.model_port import ModelFacts
from localglm.engine.needs import cache_bytes, check_caches, memory_notes, thread_notes
from localglm.errors import ModelFileError
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed
from localglm.model.roles import Role
from localglm.settings.schema import DEFAULT_CONTEXT
from localglm.text.template import ChatTemplate
from localglm.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from localglm.backends.base import Device, MemoryReport
    from localglm.engine.model_port import LoadProgress, TextPort
    from localglm.engine.protocol import OpenModel
    from localglm.gguf import ModelFile
    from localglm.model.inventory import Survey

_CHECK_SECONDS = 0.2
_EXPERT_ROLES = (Role.EXPERT_GATE_UP, Role.EXPERT_DOWN)


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


class OpenedFile:
    """A model file on a device, with its text side."""

    def __init__(self, file: ModelFile, device: Device, request: OpenModel) -> None:
        self.file = file
        self.device = device
        self.watch = FileWatch({path: FileMark.of(path) for path in file.paths})
        self._request = request
        self._template: ChatTemplate | None = None
        self.text: TextPort

    def load(self, progress: LoadProgress) -> OpenedFile:
        """Check the set, load the weights and build the text side."""
        progress("checking the file", 0, 1)
        found = survey(self.file)
        limit, request = found.geometry.context_length, self._request
        check_context(request.context, limit)
        memory = int(psutil.virtual_memory().total)
        check_caches(
            cache_bytes(
                found.geometry, request.context or min(limit, DEFAULT_CONTEXT), request.cache_type
            ),
            memory,
        )
        weight_bytes = sum(item.info.nbytes for item in found.tensors.values())
        geometry, weights = load_surveyed(
            self.file,
            found,
            self.device,
            progress=lambda done, total: progress("loading weights", done, total),
        )
        self.model = Model(geometry, weights, self.device)
        progress("reading the vocabulary", 0, 1)
        notes = (
            *found.notes,
            *self._open_text(geometry.vocabulary),
            *thread_notes(request.threads, processors()),
            *memory_notes(weight_bytes, memory),
        )
        self.facts = ModelFacts(
            architecture=self.file.arch,
            files=len(self.file.paths),
            backend=self.device.name,
            context_length=geometry.context_length,
            vocabulary=geometry.vocabulary,
            weight_bytes=weight_bytes,
            token_bytes=token_bytes(found),
            notes=tuple(dict.fromkeys(notes)),
        )
        return self

    def _open_text(self, vocabulary: int) -> tuple[str, ...]:
        """Build the text side; returns its notes."""
        metadata = self.file.metadata
        if not self._request.needs_text and "tokenizer.ggml.tokens" not in metadata:
            self.text = BareText(vocabulary)
            return ("the file has no vocabulary; it is measured with random token ids",)
        tokenizer = Tokenizer.from_metadata(metadata)
        self._template = ChatTemplate.from_metadata(metadata)
        self.text = Dialogue(tokenizer, self._template)
        return (*tokenizer.notes, *self._template.notes)

    def verify(self, *, at_once: bool = False) -> None:
        """Check that the files are still what was opened."""
        self.watch.verify(at_once=at_once)

    def memory(self) -> MemoryReport:
        """Bytes the device holds."""
        return self.device.memory()

    def is_finite(self, buffer: Any) -> bool:
        """Whether a float buffer has no NaN and no +inf."""
        values = self.device.download(buffer)
        return bool((np.asarray(values, np.float64) < np.inf).all())

    def close(self) -> None:
        """Free everything."""
        if self._template is not None:
            self._template.close()
        self.device.close()
        self.file.close()


def token_bytes(found: Survey) -> int:
    """Return the weight bytes one generated token reads.

    One row of the embedding, the used share of the experts, the draft block left out, all the rest.
    """
    geometry, total = found.geometry, 0
    draft = "" if geometry.draft is None else f"blk.{geometry.draft.index}."
    for item in found.tensors.values():
        size, role = item.info.nbytes, item.expected.role
        if draft and item.expected.name.startswith(draft):
            continue
        if role in _EXPERT_ROLES:
            size = size * geometry.moe.used // geometry.moe.experts
        elif role is Role.EMBEDDING:
            is_head = "output.weight" not in found.tensors
            size = size // geometry.vocabulary + (size if is_head else 0)
        total += size
    return total


def open_model_file(request: OpenModel, progress: LoadProgress) -> OpenedFile:
    """Open, check and load a model file, shard or folder.

    Raises: ModelFileError, DeviceError, MemoryShortError.
    """
    progress("opening the file", 0, 1)
    file = open_model(Path(request.path))
    try:
        device = open_device(DeviceChoice(request.backend, request.threads))
    except BaseException:
        file.close()
        raise
    opened = OpenedFile(file, device, request)
    try:
        return opened.load(progress)
    except BaseException:
        opened.close()
        raise
