"""Errors across the process boundary: from exception to ``Failed`` event and back."""

from __future__ import annotations

import sys
import traceback

from localglm import errors
from localglm.engine.protocol import Failed


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
        error = errors.RequestError(
            f"the request failed inside the engine: {type(error).__name__}: {error}",
            why="this is a fault of localglm; its log has the details",
            try_="repeat the request, and report it if it fails again",
        )
    return Failed(
        request=request,
        kind=type(error).__name__,
        what=error.what,
        why=error.why,
        try_=error.try_,
    )


def to_error(event: Failed) -> errors.LocalGlmError:
    """Rebuild the exception a ``Failed`` event describes."""
    kind = getattr(errors, event.kind, errors.RequestError)
    if not (isinstance(kind, type) and issubclass(kind, errors.LocalGlmError)):
        kind = errors.RequestError
    return kind(event.what, why=event.why, try_=event.try_)
