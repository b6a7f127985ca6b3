"""Errors across the process boundary: from exception to ``Failed`` event and back."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from localglm import errors, paths
from localglm.engine.protocol import Failed

if TYPE_CHECKING:
    from pathlib import Path


def to_failed(request: int, error: BaseException) -> Failed:
    """Describe an exception. What is no error of ours goes to the log with its traceback."""
    if isinstance(error, MemoryError):
        error = errors.MemoryShortError(
            "the request needs more memory than there is",
            why=str(error) or "an allocation failed",
            try_="use a shorter context, a smaller chunk, or close other programs",
        )
    if not isinstance(error, errors.LocalGlmError):
        traceback.print_exception(error, file=sys.stderr)
        kept = keep_traceback(error, paths.log_folder() / "engine-fault.log")
        error = errors.RequestError(
            f"the request failed inside the engine: {type(error).__name__}: {error}",
            why="this is a fault of localglm",
            try_=f"repeat the request, and report it{kept} if it fails again",
        )
    return Failed(
        request=request,
        kind=type(error).__name__,
        what=error.what,
        why=error.why,
        try_=error.try_,
    )


def keep_traceback(error: BaseException, file: Path) -> str:
    """Write the traceback of ``error`` to ``file``; return words that point there, if it went."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return ""
    return f" with {file}"


def to_error(event: Failed) -> errors.LocalGlmError:
    """Rebuild the exception a ``Failed`` event describes."""
    kind = getattr(errors, event.kind, errors.RequestError)
    if not (isinstance(kind, type) and issubclass(kind, errors.LocalGlmError)):
        kind = errors.RequestError
    return kind(event.what, why=event.why, try_=event.try_)
