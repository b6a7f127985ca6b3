"""The first screen: what was found here, and a chat one key away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from localglm.tui.safe_text import one_line
from localglm.units import size_text

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from localglm.tui.app import GlmApp
    from localglm.tui.finding import Found, Model

_LOOKING = "looking at this machine (a few seconds; you need not wait)"


class WelcomeScreen(Screen[None]):
    """Shows the machine and the models; Enter starts a chat."""

    CSS = """
    WelcomeScreen Vertical { padding: 1 2; }
    WelcomeScreen Static { height: auto; margin-bottom: 1; }
    WelcomeScreen OptionList { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self) -> None:
        super().__init__()
        self._models: list[Model] = []

    @property
    def program(self) -> GlmApp:
        """The program this screen belongs to."""
        return cast("GlmApp", self.app)

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with Vertical():
            yield Static(Text("localglm: GLM-5.3-Flash on this computer", "bold"))
            yield Static(_LOOKING, id="machine", markup=False)
            yield Static("models found; Enter starts a chat with the chosen one", markup=False)
            yield OptionList(id="models")
            yield Static(
                "F1 help · Ctrl+P every action · Ctrl+Q leaves · plain lines: localglm --plain",
                markup=False,
            )

    async def on_mount(self) -> None:
        """Look for models at once and at the machine meanwhile."""
        self._models = await asyncio.to_thread(self.program.begin.find_models)
        models = self.query_one(OptionList)
        for model in self._models:
            line = Text(one_line(model.name, 60))
            line.append(f"  {size_text(model.size)}  {one_line(str(model.path.parent), 60)}", "dim")
            models.add_option(Option(line))
        models.highlighted = 0 if self._models else None
        models.focus()
        self.run_worker(self._look())

    async def _look(self) -> None:
        found = await asyncio.to_thread(self.program.begin.find_machine)
        self.program.note_machine(found)
        self.query_one("#machine", Static).update(machine_text(found))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the model and begin to chat."""
        self.program.open_model(self._models[event.option_index].path)
        self.dismiss(None)


def machine_text(found: Found) -> str:
    """Return what was found, in lines."""
    return (
        f"device   {one_line(found.device)}\nbackend  {found.backend}: {one_line(found.why, 160)}\n"
        f"memory   {found.memory}"
    )
