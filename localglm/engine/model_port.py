"""What the engine needs of a model and of its text side, as protocols.

``engine.opening`` fills them with a GGUF file; tests fill them with a small seeded language model.
Nothing here knows a backend or a file format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from localglm.arrays import AnyArray
from localglm.backends.base import MemoryReport
from localglm.engine.events import ExpertCounts, MemoryPlan
from localglm.engine.protocol import ChatPrompt, IdsPrompt, OpenModel, RandomPrompt, TextPrompt

LogitRows: TypeAlias = Literal["last", "all", "none"]
PieceKind: TypeAlias = Literal["answer", "thinking", "tool_call"]
LoadProgress: TypeAlias = Callable[[str, int, int], None]


class StatePort(Protocol):
    """The memory of one sequence."""

    @property
    def position(self) -> int:
        """Tokens seen."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens seen, in order."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    def snapshot(self) -> Any:
        """Return this point; ``position`` and ``tokens`` of the result say where it is."""

    def can_restore(self, snapshot: Any) -> bool:
        """Whether ``restore`` would work."""

    def restore(self, snapshot: Any) -> None:
        """Go back to a point."""

    def fork(self) -> StatePort:
        """Return an independent copy."""


class ModelPort(Protocol):
    """A model that continues a sequence."""

    def new_state(self, *, context: int, cache_type: str = "f16") -> Any:
        """Return an empty sequence."""

    def forward(
        self, state: Any, ids: Sequence[int], *, logits: LogitRows = "last", probe: Any = None
    ) -> AnyArray | None:
        """Feed tokens; logits [1 or t, n] on the host, or None."""


MarkedText: TypeAlias = tuple[tuple[str, bool], ...]
"""Runs of text, each with whether it is a marker that is one id; neighbours are never both text."""
FreshPrompt: TypeAlias = ChatPrompt | TextPrompt | IdsPrompt | RandomPrompt
Known: TypeAlias = tuple[MarkedText, tuple[int, ...]]
"""Text that ids stand for, as they were really read or written."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prompt ready to be read: its token ids, and whether it leaves a thinking block open."""

    ids: list[int]
    is_chat: bool = False
    is_thinking: bool = False
    tools: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that became certain, or a complete tool call."""

    kind: PieceKind
    text: str
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


class OutputPort(Protocol):
    """Turns generated ids into pieces; starts in the mode the sent prompt implies."""

    @property
    def is_thinking(self) -> bool:
        """Whether the next token belongs to a thinking block."""

    def push(self, token: int) -> list[Piece]:
        """Take one token."""

    def finish(self) -> list[Piece]:
        """Return what was held back."""


class TextPort(Protocol):
    """Tokenizer and template of one model."""

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""

    @property
    def end_of_turn(self) -> frozenset[int]:
        """Ids that end an answer."""

    @property
    def close_thinking(self) -> tuple[int, ...]:
        """Ids that close a thinking block; empty when the vocabulary has none."""

    def prepare(self, prompt: FreshPrompt, known: Sequence[Known], limit: int) -> Prepared:
        """Render and encode. A chat that begins with a known text keeps the ids of that.

        Raises: RequestError, early, for a prompt that is far beyond ``limit`` tokens.
        """

    def marked(self, ids: Sequence[int]) -> MarkedText:
        """Return the text of ids."""

    def output(self, prepared: Prepared) -> OutputPort:
        """Return a fresh reader of the ids that follow; only a chat has thinking and tool calls."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What ``Opened`` tells about a model. ``context_length`` is the file's own limit."""

    architecture: str
    files: int
    backend: str
    context_length: int
    vocabulary: int
    weight_bytes: int
    token_bytes: int
    notes: tuple[str, ...] = ()
    plan: MemoryPlan | None = None


class ExpertCachePort(Protocol):
    """Memory for experts that are read from the disk."""

    @property
    def memory(self) -> int:
        """Bytes it may take now."""

    @property
    def least(self) -> int:
        """Bytes it cannot work without."""

    @property
    def most(self) -> int:
        """Bytes it was planned to take."""

    def resize(self, memory: int) -> None:
        """Change what it may take."""


class OpenedModel(Protocol):
    """A model file in use."""

    @property
    def facts(self) -> ModelFacts:
        """What it is."""

    @property
    def model(self) -> ModelPort:
        """The forward pass."""

    @property
    def text(self) -> TextPort:
        """Tokenizer and template."""

    @property
    def expert_cache(self) -> ExpertCachePort | None:
        """Memory of experts that are read from the disk; None when all are in memory."""

    def expert_counts(self) -> ExpertCounts | None:
        """Sum up what was read of experts on the disk."""

    def begin_pass(self, tokens: int) -> None:
        """Say how many tokens are fed next; memory of passes of another size is given back."""

    def verify(self, *, at_once: bool = False) -> None:
        """Check that the files are still what was opened, a few times a second or ``at_once``.

        Raises: ModelFileError naming the file and what changed.
        """

    def memory(self) -> MemoryReport:
        """Bytes the device holds."""

    def is_finite(self, buffer: Any) -> bool:
        """Whether a float buffer on the device has no NaN and no +inf (scores may be -inf)."""

    def close(self) -> None:
        """Free everything."""


Opener: TypeAlias = Callable[[OpenModel, LoadProgress], OpenedModel]
