"""What /stats and /memory show, as rows of styled text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.units import duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.engine.protocol import Done, MemoryReply, StatsReply
    from localglm.tui.wrapping import Span

_BAR = 24


def bar(share: float, width: int = _BAR) -> str:
    """Return a bar of which ``share``, 0 to 1, is filled."""
    filled = round(width * min(1.0, max(0.0, share)))
    return "█" * filled + "░" * (width - filled)


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> list[list[Span]]:
    """Return rows of name, bar and figure under a title; values are compared with their sum."""
    whole = sum(value for _, value, _ in rows) or 1.0
    width = max((len(name) for name, _, _ in rows), default=0)
    out: list[list[Span]] = [[(title, "heading")]]
    for name, value, figure in rows:
        out.append(
            [(f"{name:<{width}}  ", "text"), (bar(value / whole), "bullet"), (f"  {figure}", "dim")]
        )
    return out


def stats_rows(done: Done | None, totals: StatsReply) -> list[list[Span]]:
    """Return where the time of the last answer went, and the totals."""
    out: list[list[Span]] = []
    if done is not None:
        usage, times = done.usage, done.timings
        out += bars(
            "time of the last answer",
            [
                ("reading", times.prefill_s, _pace(times.prefill_s, usage.read, "read")),
                ("writing", times.decode_s, _pace(times.decode_s, usage.generated, "written")),
            ],
        )
        kept = f"{usage.cached:,} of {usage.prompt:,} prompt tokens were kept from before"
        out.append([(f"{kept}; {usage.thinking:,} tokens were thinking; seed {done.seed}", "dim")])
    out.append([("since the model was opened", "heading")])
    kept = f"{totals.prompt_tokens:,} prompt tokens, {totals.cached_tokens:,} of them kept"
    written = f"{totals.generated_tokens:,} tokens written"
    out.append([(f"{totals.requests} answers; {kept}; {written}", "text")])
    return out


def memory_rows(reply: MemoryReply) -> list[list[Span]]:
    """Return the memory map as bars."""
    sessions = sum(reply.sessions.values())
    rows = [
        ("weights", reply.weights),
        ("mapped file", reply.mapped),
        ("buffers", reply.buffers),
        ("conversations", sessions),
    ]
    out = bars("memory", [(name, float(size), size_text(size)) for name, size in rows if size])
    kept = f"{reply.snapshots} states are kept by name; " if reply.snapshots else ""
    out.append([(f"{kept}the engine process takes {size_text(reply.process)}", "dim")])
    return out


def _pace(seconds: float, tokens: int, verb: str) -> str:
    each = f", {1000 * seconds / tokens:.1f} ms each" if tokens else ""
    return f"{duration_text(seconds)} · {tokens:,} tokens {verb}{each}"
