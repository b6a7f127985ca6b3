"""Everything the program is started with, so that tests can start it with something else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from localglm.tui.controls import Controls

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.engine.protocol import Generate, OpenModel, Prompt
    from localglm.tui.bridge import EngineLike
    from localglm.tui.finding import Found, Model
    from localglm.tui.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Last:
    """What was open when the program was left."""

    model: Path | None = None
    chat: int | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """How to reach the engine, the chats and the machine."""

    make_engine: Callable[[], EngineLike]
    make_shelf: Callable[[], Shelf]
    open_request: Callable[[Path], OpenModel]
    generate_request: Callable[[Prompt, Controls], Generate]
    find_models: Callable[[], list[Model]]
    find_machine: Callable[[], Found]
    keep_last: Callable[[Last], None]
    last: Last = Last()
    model: Path | None = None
    controls: Controls = field(default_factory=Controls)
