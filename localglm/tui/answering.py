"""One answer while it comes: news become text of a turn, times and rates."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from localglm.engine import protocol as p
from localglm.tui.bridge import Broke, Piece

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.tui.bridge import News
    from localglm.tui.entries import TurnEntry

_RATE_AFTER_S = 0.4
"""What came with the first frame says nothing of the pace."""

_ENDS = {"cancelled": "stopped", "length": "cut"}


class Answering:
    """Fills an entry and its turn from news; a continued turn grows."""

    def __init__(self, entry: TurnEntry, clock: Callable[[], float] = time.monotonic) -> None:
        self.entry = entry
        self.turn = entry.turn
        self.turn.state = "writing"
        self.prefill: p.Prefill | None = None
        self.done: p.Done | None = None
        self.is_over = False
        self._clock = clock
        self._begun: float | None = None
        self._thinking_from: float | None = None
        self._thought_before_s = self.turn.thinking_s
        self._first = 0
        self.tokens = 0

    @property
    def is_thinking(self) -> bool:
        """Whether the last that came was thinking."""
        return self._thinking_from is not None and not self.is_over

    @property
    def rate(self) -> float | None:
        """Tokens a second since the first one."""
        if self.done is not None:
            return self.done.timings.decode_tokens_per_s
        if self._begun is None:
            return None
        elapsed = self._clock() - self._begun
        return (self.tokens - self._first) / elapsed if elapsed >= _RATE_AFTER_S else None

    @property
    def used(self) -> int:
        """Tokens of the context that are taken."""
        if self.done is not None:
            return self.done.usage.prompt + self.done.usage.generated
        return (self.prefill.done if self.prefill is not None else 0) + self.tokens

    def take(self, news: News) -> None:
        """Take one piece of news."""
        match news:
            case Piece():
                self._grow(news)
            case p.Prefill():
                self.prefill = news
            case p.Notice():
                self.entry.notices.append(news.text)
            case p.ToolCall():
                self.entry.notices.append(f"the model called {news.name}; no tools are offered")
            case p.Done():
                self._end(news)
            case Broke():
                self.turn.state = "broken"
                self._stop_clock()
                self.is_over = True
            case _:
                pass

    def tick(self) -> None:
        """Let the time of the thinking go on."""
        if self._thinking_from is not None:
            self.turn.thinking_s = self._thought_before_s + self._clock() - self._thinking_from

    def _grow(self, piece: Piece) -> None:
        now = self._clock()
        if self._begun is None:
            self._begun, self._first = now, piece.tokens
        self.tokens += piece.tokens
        if piece.kind == "thinking":
            if self._thinking_from is None:
                self._thinking_from = now
            self.turn.thinking += piece.text
            self.turn.thinking_tokens += piece.tokens
            self.entry.append("", piece.text)
            self.tick()
        else:
            self._stop_clock()
            self.turn.text += piece.text
            self.entry.append(piece.text, "")

    def _stop_clock(self) -> None:
        self.tick()
        self._thinking_from = None
        self._thought_before_s = self.turn.thinking_s

    def _end(self, done: p.Done) -> None:
        self.done = done
        self._stop_clock()
        self.turn.thinking_tokens = max(self.turn.thinking_tokens, done.usage.thinking)
        state = _ENDS.get(done.reason, "complete")
        self.turn.state = state  # type: ignore[assignment]
        self.is_over = True
