"""Starting the program on the real engine, and leaving the terminal as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localglm import paths
from localglm.cli.request_options import Chosen
from localglm.engine.client import Engine
from localglm.tui import finding
from localglm.tui.app import GlmApp
from localglm.tui.begin import Begin
from localglm.tui.controls import Controls
from localglm.tui.disk_shelf import DiskShelf
from localglm.tui.last import keep_last, read_last

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from localglm.engine.protocol import Generate, Prompt


def run(model: Path | None, flags: Mapping[str, Any]) -> None:
    """Run the full screen until the user leaves.

    Raises: LocalGlmError for settings that cannot be obeyed.
    """
    chosen = Chosen.of(flags)
    app = GlmApp(_begin(model, chosen))
    try:
        app.run()
    finally:
        app.close()
    if app.fault is not None:
        raise app.fault


def _begin(model: Path | None, chosen: Chosen) -> Begin:
    def generate(prompt: Prompt, controls: Controls) -> Generate:
        flags = {**chosen.flags, "thinking_budget": controls.budget}
        return Chosen(chosen.loaded, flags).generate(prompt)

    return Begin(
        make_engine=Engine,
        make_shelf=lambda: DiskShelf(paths.data_folder() / "chats.sqlite3"),
        open_request=chosen.open_model,
        generate_request=generate,
        find_models=lambda: finding.models(finding.usual_folders()),
        find_machine=finding.this_machine,
        keep_last=keep_last,
        last=read_last(),
        model=model,
        controls=Controls(
            level=chosen.loaded.settings.think,
            budget=chosen.flags["thinking_budget"],
            is_shown=chosen.flags["show_thinking"],
        ),
    )
