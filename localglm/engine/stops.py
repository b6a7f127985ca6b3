"""Stop strings in streamed text: what may still become one is held back until that is decided."""

from __future__ import annotations

from localglm.engine.checks import check_stops


class StopMatcher:
    """Passes text through until one of the stop strings is complete.

    The string that is complete first wins, and of two that end at the same place the longer one: so
    the result does not depend on the pieces the text comes in.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        check_stops(stops)
        self._stops = stops
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """Take more text and return what is certain to come before any stop string."""
        if self.matched is not None:
            return ""
        self._held += text
        places = ((self._held.find(stop), stop) for stop in self._stops)
        found = min(((at + len(stop), at, stop) for at, stop in places if at >= 0), default=None)
        if found is not None:
            _, at, self.matched = found
            out, self._held = self._held[:at], ""
            return out
        keep = max((_overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        out, self._held = self._held[:cut], self._held[cut:]
        return out

    def finish(self) -> str:
        """Return what was held back; call it when no more text comes."""
        out, self._held = self._held, ""
        return out


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of ``text`` that begins ``stop``."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
