"""What can be refused about a request before a model is open. Needs neither numpy nor a model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from localglm.engine.frames import MAX_FRAME_BYTES
from localglm.engine.protocol import encode
from localglm.errors import RequestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from localglm.engine.protocol import Generate, Request, Sampling

SEED_LIMIT = 2**63


def check_generate(request: Generate, spelled: Callable[[str], str] = str) -> None:
    """Refuse values that no model could obey; ``spelled`` names a value as the user knows it.

    Raises: UsageError.
    """
    check_sampling(request.sampling, spelled)
    check_stops(request.stop)
    if request.max_tokens is not None and request.max_tokens < 0:
        raise UsageError(
            f"{spelled('max_tokens')} = {request.max_tokens} is out of range",
            why="accepted: 0 or more",
            try_="leave it out to write until the context is full",
        )


def check_sampling(sampling: Sampling, spelled: Callable[[str], str] = str) -> None:
    """Refuse a value outside its range.

    Raises: UsageError naming the value and the range.
    """
    ranges = {
        "temperature": (sampling.temperature, 0.0, 10.0),
        "repetition_penalty": (sampling.repetition_penalty, 0.1, 10.0),
        "presence_penalty": (sampling.presence_penalty, -2.0, 2.0),
        "frequency_penalty": (sampling.frequency_penalty, -2.0, 2.0),
        "min_p": (sampling.min_p, 0.0, 1.0),
    }
    for name, (value, low, high) in ranges.items():
        if value is not None and not (math.isfinite(value) and low <= value <= high):
            raise _out_of_range(spelled(name), value, f"{low:g} to {high:g}")
    if sampling.top_p is not None and not 0.0 < sampling.top_p <= 1.0:
        raise _out_of_range(spelled("top_p"), sampling.top_p, "more than 0 to 1")
    if sampling.top_k is not None and sampling.top_k < 1:
        raise _out_of_range(spelled("top_k"), sampling.top_k, "1 or more")
    if sampling.seed is not None and not 0 <= sampling.seed < SEED_LIMIT:
        raise _out_of_range(spelled("seed"), sampling.seed, "0 to 2^63 - 1")


def _out_of_range(name: str, value: float, accepted: str) -> UsageError:
    return UsageError(
        f"{name} = {value:g} is out of range",
        why=f"accepted: {accepted}",
        try_="leave it out to use the default",
    )


def check_stops(stops: Iterable[str]) -> None:
    """Refuse an empty stop string.

    Raises: UsageError.
    """
    if any(not stop for stop in stops):
        raise UsageError(
            "a stop string is empty",
            why="an empty string matches before the first token",
            try_="leave the stop string out",
        )


def check_context(asked: int | None, limit: int) -> None:
    """Refuse a context beyond the one of the file; None stands for the default.

    Raises: UsageError naming both numbers.
    """
    if asked is not None and asked > limit:
        raise UsageError(
            f"a context of {asked} tokens was asked for",
            why=f"the file says the model reads at most {limit}",
            try_=f"ask for {limit} or less, prompt and answer together",
        )


def pack(request: Request) -> bytes:
    """Return the bytes to send.

    Raises: UsageError for text that is not Unicode, RequestError for more than one request holds.
    """
    try:
        payload = encode(request)
    except UnicodeEncodeError as error:
        raise UsageError(
            "a text is not valid Unicode",
            why=f"character {error.start + 1} of it stands for a byte that is not UTF-8",
            try_="save the text or name the file in UTF-8",
        ) from error
    if len(payload) > MAX_FRAME_BYTES:
        raise RequestError(
            f"the prompt is too large: the request has {len(payload):,} bytes",
            why=f"one request holds at most {MAX_FRAME_BYTES:,} bytes, more than any context",
            try_="shorten the prompt",
        )
    return payload
