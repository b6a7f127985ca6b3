"""The command palette, safe to page through before its list has been laid out."""

from __future__ import annotations

import contextlib

from textual.command import CommandPalette


class PaletteScreen(CommandPalette):
    """Textual's palette; a page key that comes before the first layout of the list does nothing."""

    def _action_command_list(self, action: str) -> None:
        # Textual looks the highlighted row up in a table that is empty until the list was drawn.
        with contextlib.suppress(KeyError):
            super()._action_command_list(action)
