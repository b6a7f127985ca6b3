"""Openers that end their process as the system does after a fault of the processor."""

from __future__ import annotations

import faulthandler
from typing import Any

from localglm.backends.cpu.library import Native


def open_foreign(_request: Any, _progress: Any) -> None:
    """Touch memory of nobody."""
    faulthandler._raise_exception(0xC0000005)


def open_unreadable(_request: Any, _progress: Any) -> None:
    """Touch a mapped page that the disk does not give."""
    faulthandler._raise_exception(0xC0000006)


def open_broken(_request: Any, _progress: Any) -> None:
    """Hand the library an address of nobody."""
    Native(2, None).run("lg_add", 16, 16, 16, 4)
