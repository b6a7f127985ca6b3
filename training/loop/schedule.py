"""What changes during a run: the learning rate, the row lengths, whether selection is in force.

Everything follows the share of the time budget that has passed, because a run is ended by its
clock, not by a step count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a run. ``until`` is the share of time at which it ends.

    ``prompt_weight``: loss of text the model does not write.
    """

    until: float
    lengths: Mapping[int, float]
    selects: bool
    prompt_weight: float


FIRST_RUN = (
    Stage(0.45, {512: 0.5, 1024: 0.5}, selects=False, prompt_weight=0.1),
    Stage(0.75, {512: 0.2, 1024: 0.35, 2048: 0.3, 4096: 0.15}, selects=True, prompt_weight=0.03),
    Stage(1.0, {512: 0.2, 1024: 0.25, 2048: 0.2, 4096: 0.15, 8192: 0.15, 16384: 0.05},
          selects=True, prompt_weight=0.02),
)  # fmt: skip
SECOND_RUN = (
    Stage(1.0, {512: 0.2, 1024: 0.25, 2048: 0.2, 4096: 0.15, 8192: 0.15, 16384: 0.05},
          selects=True, prompt_weight=0.02),
)  # fmt: skip
RUNS = {"first": FIRST_RUN, "second": SECOND_RUN}


@dataclass(frozen=True, slots=True)
class Rate:
    """Learning rate: up to ``peak`` over ``warm`` steps, level, then down from ``hold`` on.

    The fall is linear in time, to ``end`` times the peak.
    """

    peak: float
    warm: int
    hold: float
    end: float

    def at(self, step: int, share: float) -> float:
        """Return the rate at a step when ``share`` of the time has passed."""
        up = min(1.0, (step + 1) / self.warm)
        fall = max(0.0, share - self.hold) / (1.0 - self.hold)
        return self.peak * up * (1.0 - (1.0 - self.end) * min(1.0, fall))


def stage_at(stages: tuple[Stage, ...], share: float) -> int:
    """Return the number of the stage at a share of the time."""
    return next((i for i, stage in enumerate(stages) if share < stage.until), len(stages) - 1)
