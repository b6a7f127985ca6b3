"""What is said when a model and a conversation cannot fit, and what would make them fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.engine.needs import cache_bytes
from localglm.errors import MemoryShortError
from localglm.units import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.engine.events import MemoryPart
    from localglm.engine.memory_limits import Ceiling
    from localglm.engine.planner import Wish
    from localglm.model.geometry import Geometry

_LEAST_CONTEXT = 512
_LEAST_CHUNK = 32
_NAMED = 3


def refusal(
    geometry: Geometry, wish: Wish, parts: Sequence[MemoryPart], experts: int, limit: Ceiling
) -> MemoryShortError:
    """Return the error: what is needed, what there is, what to change."""
    counted = [part for part in parts if limit.counts_mapped or part.home == "memory"]
    needed = sum(part.nbytes for part in counted) + experts
    largest = sorted(counted, key=lambda part: -part.nbytes)[:_NAMED]
    shares = ", ".join(f"{part.name} {size_text(part.nbytes)}" for part in largest)
    return MemoryShortError(
        f"this needs {size_text(needed)} of memory and may take {size_text(limit.nbytes)}",
        why=f"{limit.reason}; {shares}, and at least {size_text(experts)} for experts on their way",
        try_=_advice(geometry, wish, counted, needed - limit.nbytes, limit.remedy),
    )


def _advice(
    geometry: Geometry, wish: Wish, parts: Sequence[MemoryPart], short: int, remedy: str
) -> str:
    """Name every single change that is enough by itself."""
    ways: list[str] = []
    full = cache_bytes(geometry, wish.context, wish.cache_type)
    context = wish.context // 2
    while context >= _LEAST_CONTEXT:
        if full - cache_bytes(geometry, context, wish.cache_type) >= short:
            ways.append(f"--context {context}")
            break
        context //= 2
    if wish.cache_type != "f16" and full // 2 >= short:
        ways.append("--cache-type f16")
    work = sum(part.nbytes for part in parts if part.name.startswith("work on"))
    if wish.chunk > _LEAST_CHUNK and work - work * _LEAST_CHUNK // wish.chunk >= short:
        ways.append(f"--chunk {_LEAST_CHUNK}")
    ways += [remedy, "a smaller quantisation"]
    return "; or ".join(ways)
