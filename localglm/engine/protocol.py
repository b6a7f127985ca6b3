"""Messages between a front end and the engine process: every name, and how they are packed.

Requests travel to the worker, events come back; every message is one frame holding a msgpack map
whose ``type`` names the struct. Neither numpy nor the model is imported here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from localglm.engine.events import (
    AccountReply,
    Beat,
    Delta,
    DeltaKind,
    DiskRate,
    Done,
    Event,
    ExpertCounts,
    Failed,
    FinishReason,
    Loading,
    MemoryHome,
    MemoryPart,
    MemoryPlan,
    MemoryReply,
    Notice,
    Opened,
    PartKind,
    PlanReply,
    Prefill,
    Ready,
    Reply,
    SelfTested,
    StatsReply,
    Tested,
    Testing,
    Timings,
    ToolCall,
    Usage,
)
from localglm.engine.requests import (
    Account,
    CacheType,
    Cancel,
    ChatPrompt,
    CloseModel,
    Continuation,
    Drop,
    EndThinking,
    Fork,
    Generate,
    Hello,
    IdsPrompt,
    Memory,
    Message,
    OpenModel,
    Plan,
    Prompt,
    RandomPrompt,
    Request,
    Restore,
    Role,
    Sampling,
    SelfTest,
    SetBudget,
    Shutdown,
    Snapshot,
    Stats,
    TestLevel,
    TextPrompt,
)
from localglm.errors import WorkerError

__all__ = [
    "FINAL_EVENTS",
    "PROTOCOL_VERSION",
    "Account",
    "AccountReply",
    "Beat",
    "CacheType",
    "Cancel",
    "ChatPrompt",
    "CloseModel",
    "Continuation",
    "Delta",
    "DeltaKind",
    "DiskRate",
    "Done",
    "Drop",
    "EndThinking",
    "Event",
    "ExpertCounts",
    "Failed",
    "FinishReason",
    "Fork",
    "Generate",
    "Hello",
    "IdsPrompt",
    "Loading",
    "Memory",
    "MemoryHome",
    "MemoryPart",
    "MemoryPlan",
    "MemoryReply",
    "Message",
    "Notice",
    "OpenModel",
    "Opened",
    "PartKind",
    "Plan",
    "PlanReply",
    "Prefill",
    "Prompt",
    "RandomPrompt",
    "Ready",
    "Reply",
    "Request",
    "Restore",
    "Role",
    "Sampling",
    "SelfTest",
    "SelfTested",
    "SetBudget",
    "Shutdown",
    "Snapshot",
    "Stats",
    "StatsReply",
    "TestLevel",
    "Tested",
    "Testing",
    "TextPrompt",
    "Timings",
    "ToolCall",
    "Usage",
    "check_version",
    "decode_event",
    "decode_request",
    "encode",
]

PROTOCOL_VERSION: Final = 2
FINAL_EVENTS: Final = (
    Ready, Opened, Done, Reply, PlanReply, AccountReply, MemoryReply, StatsReply, SelfTested,
    Failed,
)  # fmt: skip
"""Events that end the request they belong to."""


def encode(message: Request | Event) -> bytes:
    """Pack one message."""
    return msgspec.msgpack.encode(message)


def decode_request(payload: bytes) -> Request:
    """Unpack what a front end sent.

    Raises: WorkerError when it is no request of this version.
    """
    try:
        return msgspec.msgpack.decode(payload, type=Request)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise _malformed("request", payload, error) from error


def decode_event(payload: bytes) -> Event:
    """Unpack what the worker sent.

    Raises: WorkerError when it is no event of this version.
    """
    try:
        return msgspec.msgpack.decode(payload, type=Event)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
        raise _malformed("event", payload, error) from error


def _malformed(kind: str, payload: bytes, error: Exception) -> WorkerError:
    return WorkerError(
        f"a malformed {kind} of {len(payload)} bytes came over the engine's pipe",
        why=str(error),
        try_="repeat the request; the engine is started again",
    )


def check_version(found: int) -> None:
    """Refuse the other side when it speaks another version.

    Raises: WorkerError naming both versions.
    """
    if found != PROTOCOL_VERSION:
        raise WorkerError(
            f"the other side speaks engine protocol {found}, this one {PROTOCOL_VERSION}",
            why="the program was replaced while it ran, or two installations mix",
            try_="start localglm again",
        )
