"""What a front end sends to the engine process."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
CacheType: TypeAlias = Literal["f16", "f32"]
TestLevel: TypeAlias = Literal["quick", "full"]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a conversation. ``reasoning`` is the thinking of a past assistant turn."""

    role: Role
    content: str
    reasoning: str | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()


# -- what a generation starts from ------------------------------------------------------------
class ChatPrompt(msgspec.Struct, frozen=True, tag="chat"):
    """Turns to render with the file's template at a thinking level.

    With ``effort`` off, the effort line of the prompt names ``off_effort``.
    """

    messages: tuple[Message, ...]
    effort: str = "high"
    off_effort: str = "low"
    tools: tuple[dict[str, Any], ...] = ()


class Continuation(msgspec.Struct, frozen=True, tag="continue"):
    """Go on with the session's last answer, which a limit or the user ended."""


class TextPrompt(msgspec.Struct, frozen=True, tag="text"):
    """Text to continue as it stands; markers are read as markers only when ``special``."""

    text: str
    special: bool = False


class IdsPrompt(msgspec.Struct, frozen=True, tag="ids"):
    """Token ids to continue as they stand."""

    ids: tuple[int, ...]


class RandomPrompt(msgspec.Struct, frozen=True, tag="random"):
    """``count`` random ordinary tokens, for measuring."""

    count: int
    seed: int


Prompt: TypeAlias = ChatPrompt | Continuation | TextPrompt | IdsPrompt | RandomPrompt


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is chosen; ranges in ``engine.sampler``. None switches a filter off."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None


# -- requests ---------------------------------------------------------------------------------
class _Request(msgspec.Struct, frozen=True, kw_only=True):
    request: int


class Hello(_Request, frozen=True, kw_only=True, tag="hello"):
    """First message: the version the front end speaks."""

    version: int


class OpenModel(_Request, frozen=True, kw_only=True, tag="open"):
    """Open a model; one that is open is closed first. ``context`` None: chosen from the model.

    Without ``needs_text`` a file that has no vocabulary opens too; only ids can be sent to it.
    ``memory``: bytes the process may take in all; None: what this computer can spare.
    """

    path: str
    backend: str = "cpu"
    threads: int | None = None
    context: int | None = None
    chunk: int = 512
    cache_type: CacheType = "f16"
    needs_text: bool = True
    memory: int | None = None


class Account(_Request, frozen=True, kw_only=True, tag="account"):
    """Say what opening a model would take, without loading it; an open model is closed first."""

    open: OpenModel


class CloseModel(_Request, frozen=True, kw_only=True, tag="close"):
    """Free the model and every conversation."""


class Generate(_Request, frozen=True, kw_only=True, tag="generate"):
    """Read a prompt and write an answer, in the named session."""

    prompt: Prompt
    session: str = "main"
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    thinking_budget: int | None = None
    ignore_end: bool = False
    step_times: bool = False


class Cancel(_Request, frozen=True, kw_only=True, tag="cancel"):
    """Stop request ``target`` within one step; its Done carries what was written."""

    target: int


class EndThinking(_Request, frozen=True, kw_only=True, tag="end_thinking"):
    """Close the thinking block of request ``target`` now and go on with the answer."""

    target: int


class SetBudget(_Request, frozen=True, kw_only=True, tag="set_budget"):
    """Change the thinking budget of request ``target``; None removes it."""

    target: int
    tokens: int | None


class Snapshot(_Request, frozen=True, kw_only=True, tag="snapshot"):
    """Keep the state of a session under a handle."""

    session: str = "main"


class Restore(_Request, frozen=True, kw_only=True, tag="restore"):
    """Set a session back to a kept state."""

    handle: str


class Fork(_Request, frozen=True, kw_only=True, tag="fork"):
    """Copy a session under another name."""

    session: str
    target: str


class Drop(_Request, frozen=True, kw_only=True, tag="drop"):
    """Forget a kept state or a whole session."""

    handle: str | None = None
    session: str | None = None


class Plan(_Request, frozen=True, kw_only=True, tag="plan"):
    """Say what a prompt would cost: tokens in all, tokens kept from the session, tokens to read."""

    prompt: Prompt
    session: str = "main"


class Memory(_Request, frozen=True, kw_only=True, tag="memory"):
    """Ask for the memory map."""


class Stats(_Request, frozen=True, kw_only=True, tag="stats"):
    """Ask for the counters since the model was opened."""


class SelfTest(_Request, frozen=True, kw_only=True, tag="self_test"):
    """Run every op of a back end against its definition; an open model is closed first."""

    level: TestLevel = "quick"
    backend: str = "cpu"
    device: str | None = None
    threads: int | None = None


class Shutdown(_Request, frozen=True, kw_only=True, tag="shutdown"):
    """End the process."""


Request: TypeAlias = (
    Hello
    | OpenModel
    | Account
    | CloseModel
    | Generate
    | Cancel
    | EndThinking
    | SetBudget
    | Snapshot
    | Restore
    | Fork
    | Drop
    | Plan
    | Memory
    | Stats
    | SelfTest
    | Shutdown
)
