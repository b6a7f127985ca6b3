"""From the path of a model file to everything a request needs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localglm.engine.accounting import Accountant, token_bytes
from localglm.engine.bare_text import BareText
from localglm.engine.checks import check_context
from localglm.engine.devices import DeviceChoice, open_device, processors
from localglm.engine.dialogue import Dialogue
from localglm.engine.events import ExpertCounts
from localglm.engine.file_watch import FileMark, FileWatch
from localglm.engine.model_port import ModelFacts
from localglm.engine.needs import thread_notes
from localglm.engine.own_memory import anonymous_bytes, give_back_unused
from localglm.engine.plan_text import plan_line
from localglm.engine.planner import Base
from localglm.engine.pressure import ExpertCacheMemory
from localglm.experts import minimum_memory, open_home
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed
from localglm.text.template import ChatTemplate
from localglm.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from localglm.backends.base import Device, MemoryReport
    from localglm.engine.events import MemoryPlan
    from localglm.engine.model_port import LoadProgress, TextPort
    from localglm.engine.protocol import OpenModel
    from localglm.experts import StreamedHome
    from localglm.gguf import ModelFile

_FEW_TOKENS = 8


class OpenedFile:
    """A model file on a device, with its text side."""

    def __init__(self, file: ModelFile, device: Device, request: OpenModel) -> None:
        self.file = file
        self.device = device
        self.watch = FileWatch({path: FileMark.of(path) for path in file.paths})
        self.home: StreamedHome | None = None
        self.expert_cache: ExpertCacheMemory | None = None
        self._pass_tokens = 0
        self._request = request
        self._template: ChatTemplate | None = None
        self.text: TextPort

    def plan(self, progress: LoadProgress) -> OpenedFile:
        """Check the set, build the text side and decide what is kept where.

        Raises: ModelFileError, UsageError, MemoryShortError.
        """
        progress("checking the file", 0, 1)
        self.found = found = survey(self.file)
        check_context(self._request.context, found.geometry.context_length)
        progress("reading the vocabulary", 0, 1)
        before = anonymous_bytes()
        self._text_notes = self._open_text(found.geometry.vocabulary)
        added = max(0, anonymous_bytes() - before)
        base = Base(before, added, has_text=not isinstance(self.text, BareText))
        progress("counting memory", 0, 1)
        self.accountant = Accountant(self.file, found, self.device, self._request)
        self.memory_plan: MemoryPlan = self.accountant.plan(base)
        give_back_unused()
        progress(plan_line(self.memory_plan), 0, 1)
        return self

    def load(self, progress: LoadProgress) -> OpenedFile:
        """Load the weights as planned."""
        plan, found, request = self.memory_plan, self.found, self._request
        if plan.experts == "streamed":
            depth = self.accountant.drive.depth
            self.home = open_home(self.file, found, memory=plan.expert_cache, depth=depth)
            self.expert_cache = ExpertCacheMemory(
                self.home.resize, plan.expert_cache, minimum_memory(found)
            )
        geometry, weights = load_surveyed(
            self.file,
            found,
            self.device,
            progress=lambda done, total: progress("loading weights", done, total),
            home=self.home,
        )
        self.model = Model(geometry, weights, self.device)
        reference = ["the reference back end takes more memory than was planned"]
        drive_notes = self.accountant.drive.notes if self.home is not None else ()
        notes = (
            *found.notes,
            *self._text_notes,
            *thread_notes(request.threads, processors()),
            *drive_notes,
            *(reference if self.device.name == "reference" else ()),
        )
        self.facts = ModelFacts(
            architecture=self.file.arch,
            files=len(self.file.paths),
            backend=self.device.name,
            context_length=geometry.context_length,
            vocabulary=geometry.vocabulary,
            weight_bytes=sum(item.info.nbytes for item in found.tensors.values()),
            token_bytes=token_bytes(found),
            notes=tuple(dict.fromkeys(notes)),
            plan=plan,
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

    def begin_pass(self, tokens: int) -> None:
        """Give memory of passes of another size back: the plan counts one set of results."""
        size = max(tokens, _FEW_TOKENS)  # steps of a few tokens may alternate, and need little
        if size != self._pass_tokens:
            self.device.tidy()
            give_back_unused()
        self._pass_tokens = size

    def expert_counts(self) -> ExpertCounts | None:
        """Sum up what was read from the disk."""
        if self.home is None or self.expert_cache is None:
            return None
        done = self.home.statistics()
        return ExpertCounts(
            memory=self.expert_cache.memory,
            hits=done.hits,
            foreseen=done.foreseen,
            misses=done.misses,
            bytes_read=done.bytes_read,
            bytes_per_s=done.read_rate,
            waiting_s=done.waiting_seconds,
        )

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
        if self.home is not None:
            self.home.close()
        self.file.close()


def open_model_file(request: OpenModel, progress: LoadProgress) -> OpenedFile:
    """Open, check and load a model file, shard or folder.

    Raises: ModelFileError, DeviceError, MemoryShortError.
    """
    with ExitStack() as failed:
        opened = _begin(request, progress)
        failed.callback(opened.close)
        opened.plan(progress).load(progress)
        failed.pop_all()
    return opened


def account(request: OpenModel) -> tuple[MemoryPlan, int]:
    """Return the memory plan of a model that is not loaded, and the context it is made for.

    Raises: ModelFileError, DeviceError, MemoryShortError.
    """
    opened = _begin(request, lambda _stage, _done, _total: None)
    try:
        plan = opened.plan(lambda _stage, _done, _total: None).memory_plan
        return plan, opened.accountant.wish.context
    finally:
        opened.close()


def _begin(request: OpenModel, progress: LoadProgress) -> OpenedFile:
    progress("opening the file", 0, 1)
    file = open_model(Path(request.path))
    try:
        device = open_device(DeviceChoice(request.backend, request.threads))
    except BaseException:
        file.close()
        raise
    return OpenedFile(file, device, request)
