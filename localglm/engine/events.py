"""What the engine process sends back; ``request`` numbers the request an event belongs to."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

FinishReason: TypeAlias = Literal["end", "stop", "length", "cancelled", "tool_calls"]
MemoryHome: TypeAlias = Literal["memory", "file", "disk"]
ExpertsHome: TypeAlias = Literal["mapped", "streamed"]
DeltaKind: TypeAlias = Literal["answer", "thinking"]
PartKind: TypeAlias = Literal["op", "arithmetic", "model"]


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    request: int


class Ready(_Event, frozen=True, kw_only=True, tag="ready"):
    """Answer to Hello."""

    version: int
    pid: int


class Beat(_Event, frozen=True, kw_only=True, tag="beat"):
    """Sign of life: what the worker does and how many steps it has done since it started."""

    stage: str
    ticks: int


class Loading(_Event, frozen=True, kw_only=True, tag="loading"):
    """Progress of opening a model."""

    stage: str
    done: int
    total: int


class MemoryPart(msgspec.Struct, frozen=True):
    """Bytes of one purpose: memory of its own, pages of a mapped file, or left on the disk."""

    name: str
    nbytes: int
    home: MemoryHome


class DiskRate(msgspec.Struct, frozen=True, kw_only=True):
    """What reading experts from the drive will cost: an estimate, and what it rests on."""

    tokens_per_s: float
    read_bytes: int
    drive_bytes_per_s: float
    is_measured: bool
    basis: str


class MemoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The account made before a model is loaded.

    ``limit``: bytes the process may hold in all, ``reason``: what sets it. ``expert_cache``: memory
    for experts read from the disk. ``process``: memory of its own; mapped pages are not in it.
    """

    parts: tuple[MemoryPart, ...]
    limit: int
    reason: str
    experts: ExpertsHome
    expert_cache: int = 0
    disk: DiskRate | None = None

    def total(self, *homes: MemoryHome) -> int:
        """Return the bytes that live in one of ``homes``."""
        return sum(part.nbytes for part in self.parts if part.home in homes)

    @property
    def process(self) -> int:
        """Memory of the process's own."""
        return self.total("memory")


class Opened(_Event, frozen=True, kw_only=True, tag="opened"):
    """The model is open. ``token_bytes``: weight bytes read for one generated token."""

    path: str
    files: int
    architecture: str
    backend: str
    context: int
    vocabulary: int
    weight_bytes: int
    token_bytes: int
    notes: tuple[str, ...] = ()
    plan: MemoryPlan | None = None


class Prefill(_Event, frozen=True, kw_only=True, tag="prefill"):
    """Progress of reading the prompt. ``cached`` tokens of ``total`` were kept from before."""

    done: int
    total: int
    cached: int
    tokens_per_s: float | None = None
    seconds_left: float | None = None


class Delta(_Event, frozen=True, kw_only=True, tag="delta"):
    """More text of the answer or of the thinking."""

    kind: DeltaKind
    text: str


class ToolCall(_Event, frozen=True, kw_only=True, tag="tool_call"):
    """A complete tool call."""

    name: str
    arguments: dict[str, Any]


class Notice(_Event, frozen=True, kw_only=True, tag="notice"):
    """Something the user should know that is no failure."""

    text: str


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one request. ``cached`` and ``read`` add up to ``prompt``."""

    prompt: int
    cached: int
    read: int
    generated: int
    thinking: int


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one request. A rate is None when no token stands behind it."""

    prefill_s: float
    decode_s: float
    first_token_s: float | None = None
    prefill_tokens_per_s: float | None = None
    decode_tokens_per_s: float | None = None
    steps_s: tuple[float, ...] = ()


class Done(_Event, frozen=True, kw_only=True, tag="done"):
    """A generation ended. ``matched_stop`` is the stop string that ended it."""

    reason: FinishReason
    usage: Usage
    timings: Timings
    seed: int
    matched_stop: str | None = None


class Reply(_Event, frozen=True, kw_only=True, tag="reply"):
    """A request without another answer was obeyed; ``handle`` names a kept state."""

    handle: str | None = None


class PlanReply(_Event, frozen=True, kw_only=True, tag="plan_reply"):
    """Answer to Plan."""

    total: int
    cached: int
    read: int


class AccountReply(_Event, frozen=True, kw_only=True, tag="account_reply"):
    """Answer to Account."""

    plan: MemoryPlan
    context: int


class MemoryReply(_Event, frozen=True, kw_only=True, tag="memory_reply"):
    """Answer to Memory: bytes by purpose, and the plan they were foreseen in.

    ``own``: memory of the process that no file stands behind, to compare with ``plan.process``.
    """

    weights: int
    buffers: int
    mapped: int
    sessions: dict[str, int] = {}
    snapshots: int = 0
    process: int = 0
    own: int = 0
    plan: MemoryPlan | None = None


class ExpertCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Experts read from the drive since the model was opened.

    ``foreseen``: read on a guess before they were wanted. ``shortages``: times memory ran short.
    """

    memory: int
    hits: int
    foreseen: int
    misses: int
    bytes_read: int
    bytes_per_s: float | None
    waiting_s: float
    shortages: int = 0


class StatsReply(_Event, frozen=True, kw_only=True, tag="stats_reply"):
    """Answer to Stats: totals since the model was opened."""

    requests: int
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    prefill_s: float
    decode_s: float
    sessions: dict[str, int] = {}
    experts: ExpertCounts | None = None


class Testing(_Event, frozen=True, kw_only=True, tag="testing"):
    """A part of the self-test begins; ``done`` of ``total`` parts lie behind."""

    part: PartKind
    name: str
    done: int
    total: int


class Tested(_Event, frozen=True, kw_only=True, tag="tested"):
    """A part of the self-test has run.

    ``worst`` counts tolerances, at most 1 passes; None: the result cannot be compared (not finite,
    another shape, other ids). ``why`` says more about a part that could not run.
    """

    part: PartKind
    name: str
    cases: int
    worst: float | None
    worst_case: str
    seconds: float
    passed: bool
    why: str = ""


class SelfTested(_Event, frozen=True, kw_only=True, tag="self_tested"):
    """The self-test ended; ``is_complete`` unless it was cancelled."""

    device: str
    is_complete: bool


class Failed(_Event, frozen=True, kw_only=True, tag="failed"):
    """A request failed; ``kind`` is the class of ``localglm.errors``."""

    kind: str
    what: str
    why: str
    try_: str


Event: TypeAlias = (
    Ready
    | Beat
    | Loading
    | Opened
    | Prefill
    | Delta
    | ToolCall
    | Notice
    | Done
    | Reply
    | PlanReply
    | AccountReply
    | MemoryReply
    | StatsReply
    | Testing
    | Tested
    | SelfTested
    | Failed
)
