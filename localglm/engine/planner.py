"""One account of memory, file pages and disk for a model and a conversation, before loading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from localglm.engine.events import DiskRate, MemoryPart, MemoryPlan
from localglm.engine.memory_limits import Ceiling
from localglm.engine.memory_short import refusal
from localglm.engine.needs import (
    PROCESS_GROWTH,
    cache_bytes,
    logit_bytes,
    state_bytes,
    token_list_bytes,
)
from localglm.engine.session import POINTS_KEPT
from localglm.experts.layout import ExpertLayout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from localglm.engine.rehearsal import Scratch
    from localglm.model.geometry import Geometry
    from localglm.model.inventory import Survey


@dataclass(frozen=True, slots=True)
class Wish:
    """What the conversation is to be."""

    context: int
    chunk: int
    cache_type: str


@dataclass(frozen=True, slots=True)
class Base:
    """Memory measured in this process: as it started, and what the text side, if any, added."""

    process: int
    text: int
    has_text: bool = True


@dataclass(frozen=True, slots=True)
class Weights:
    """Bytes of the file by what becomes of them. ``layout`` None: no routed experts."""

    always: int
    experts: int
    unread: int
    layout: ExpertLayout

    @classmethod
    def of(cls, found: Survey, layout: ExpertLayout) -> Weights:
        """Sort the tensors; the draft block is not read while nothing drafts."""
        draft = found.geometry.draft
        start = None if draft is None else f"blk.{draft.index}."
        always = experts = unread = 0
        for item in found.tensors.values():
            name, size = item.expected.name, item.info.nbytes
            if start is not None and name.startswith(start):
                unread += size
            elif "_exps." in name:
                experts += size
            else:
                always += size
        return cls(always, experts, unread, layout)


def make_plan(
    found: Survey, weights: Weights, wish: Wish, base: Base, scratch: Scratch,
    limits: Sequence[Ceiling], disk: Callable[[float], DiskRate],
) -> MemoryPlan:  # fmt: skip
    """Decide where the experts live, and account for everything.

    ``disk`` estimates the rate for a share of experts that miss the cache.
    Raises: MemoryShortError with the numbers when it cannot fit.
    """
    own = own_parts(found.geometry, wish, base, scratch)
    pages = [MemoryPart("weights of every token", weights.always, "file")]
    rest = [MemoryPart("draft block, not read", weights.unread, "disk")] if weights.unread else []
    tightest, spare = tightest_of(limits, _sum(own), _sum(pages))
    limit, reason = tightest.nbytes, tightest.reason
    _, after = tightest_of(limits, _sum(own), _sum(pages) + weights.experts)
    if after >= 0:
        experts = MemoryPart("routed experts", weights.experts, "file")
        return MemoryPlan(
            parts=(*own, *pages, experts, *rest), limit=limit, reason=reason, experts="mapped"
        )
    slot = weights.layout.slot_bytes
    least = weights.layout.least_slots * slot
    if spare < least:
        raise refusal(found.geometry, wish, (*own, *pages), least, tightest)
    cache = spare // slot * slot
    missing = 1.0 - min(1.0, cache / max(1, weights.experts))
    streamed = (
        MemoryPart("experts in memory", cache, "memory"),
        MemoryPart("other experts", max(0, weights.experts - cache), "disk"),
    )
    return MemoryPlan(
        parts=(*own, *pages, *streamed, *rest), limit=limit, reason=reason, experts="streamed",
        expert_cache=cache, disk=disk(missing),
    )  # fmt: skip


def own_parts(
    geometry: Geometry, wish: Wish, base: Base, scratch: Scratch
) -> tuple[MemoryPart, ...]:
    """Return what the process holds beside file pages and experts."""
    state = state_bytes(geometry)
    chunk = min(wish.chunk, wish.context)
    parts = {
        "interpreter and libraries": base.process + PROCESS_GROWTH,
        "vocabulary and template": base.text,
        "small weights, decoded": scratch.vectors,
        f"caches of {wish.context:,} tokens, {wish.cache_type}": cache_bytes(
            geometry, wish.context, wish.cache_type
        ),
        "linear attention states": state,
        # while a prompt is read, one more than are kept
        f"{POINTS_KEPT + 1} places to go back to": (POINTS_KEPT + 1) * state,
        f"work on {chunk:,} tokens at a time": scratch.chunk,
        "scores, token lists and text": logit_bytes(geometry)
        + token_list_bytes(wish.context, has_text=base.has_text),
    }
    return tuple(MemoryPart(name, size, "memory") for name, size in parts.items())


def tightest_of(limits: Sequence[Ceiling], own: int, pages: int) -> tuple[Ceiling, int]:
    """Return the limit that leaves least, and what it leaves (below zero: what lacks)."""
    left = [limit.nbytes - own - (pages if limit.counts_mapped else 0) for limit in limits]
    least = min(range(len(left)), key=left.__getitem__)
    return limits[least], left[least]


def _sum(parts: Sequence[MemoryPart]) -> int:
    return sum(part.nbytes for part in parts)
