"""The MODEL argument every command shares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from localglm import paths

_DEMO = "demo"


def model_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add MODEL: a GGUF file, a shard or a folder.

    The bare word ``demo`` is the model in the package; ``./demo`` a file or folder of that name.
    """
    return click.argument("model", callback=_resolve)(function)


def _resolve(_context: click.Context, _parameter: click.Parameter, value: str) -> Path:
    return paths.demo_model() if value == _DEMO else Path(value)
