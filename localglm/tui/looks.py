"""What the names of styles look like in the theme in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style

if TYPE_CHECKING:
    from collections.abc import Mapping

_COLOURS = {
    "strong": ("foreground", "bold"),
    "emphasis": ("foreground", "italic"),
    "code": ("text-accent", ""),
    "heading": ("text-primary", "bold"),
    "bullet": ("text-primary", ""),
    "quote": ("text-muted", "italic"),
    "mark": ("text-muted", ""),
    "dim": ("text-muted", ""),
    "thinking": ("text-muted", "italic"),
    "you": ("text-secondary", "bold"),
    "glm": ("text-primary", "bold"),
    "note": ("text-warning", ""),
    "error": ("text-error", "bold"),
    "good": ("text-success", ""),
    "cursor": ("text-accent", "bold"),
}


def looks(variables: Mapping[str, str]) -> dict[str, Style]:
    """Return a style for every name; colours a theme does not have are left to the terminal."""
    out = {"text": Style()}
    for name, (colour, manner) in _COLOURS.items():
        found = variables.get(colour, "")
        is_plain = found.startswith("#") and len(found) in {4, 7}
        out[name] = Style.parse(
            " ".join(filter(None, (manner, found if is_plain else ""))) or "none"
        )
    return out
