"""The three thinking controls: how much, for how long at most, and whether it is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from localglm.errors import UsageError
from localglm.text.thinking import Effort

_LEVELS = tuple(level.value for level in Effort)


@dataclass(frozen=True, slots=True)
class Controls:
    """The values in force. ``budget`` None: no limit."""

    level: str = "high"
    budget: int | None = None
    is_shown: bool = False

    def with_level(self, text: str) -> Controls:
        """Return the controls at a level; the next one when none is named.

        Raises: UsageError listing the levels.
        """
        wanted = text.strip().lower()
        wanted = {"on": "high", "none": "off"}.get(wanted, wanted)
        if not wanted:
            wanted = _LEVELS[(_LEVELS.index(self.level) + 1) % len(_LEVELS)]
        if wanted not in _LEVELS:
            raise UsageError(
                f"there is no thinking level {text!r}",
                why=f"the levels are {', '.join(_LEVELS)}",
                try_="/think low",
            )
        return replace(self, level=wanted)

    def with_budget(self, text: str) -> Controls:
        """Return the controls with a budget in tokens, or none.

        Raises: UsageError when it is neither.
        """
        wanted = text.strip().lower().replace(",", "")
        if wanted in {"", "none", "off"}:
            return replace(self, budget=None)
        if not (wanted.isascii() and wanted.isdigit()):
            raise UsageError(
                f"a thinking budget of {text!r} is no number of tokens",
                why="accepted: a whole number, or none",
                try_="/budget 2000",
            )
        return replace(self, budget=int(wanted))

    def shown(self) -> Controls:
        """Return the controls with the thinking shown or hidden, the other way round."""
        return replace(self, is_shown=not self.is_shown)

    @property
    def text(self) -> str:
        """The controls in words, for the footer."""
        budget = "no budget" if self.budget is None else f"budget {self.budget:,}"
        return f"think {self.level} · {budget} · {'shown' if self.is_shown else 'folded'}"
