"""Checking and tidying the messages and tools a template receives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from localglm.errors import RequestError

ROLES = ("system", "user", "assistant", "tool")


def plain_messages(messages: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return the messages as templates expect them.

    A missing content is an empty text, and call arguments written as JSON text become a mapping.

    Raises: RequestError for a role, content or call that cannot be rendered.
    """
    if not messages:
        raise RequestError(
            "the conversation is empty",
            why="a prompt needs at least one message",
            try_="write a message",
        )
    return [_message(place, message) for place, message in enumerate(messages, 1)]


def _message(place: int, message: Mapping[str, object]) -> dict[str, object]:
    role = message.get("role")
    if role not in ROLES:
        raise RequestError(
            f"message {place} has the role {role!r}",
            why=f"the roles are {', '.join(ROLES)}",
            try_="use one of these roles",
        )
    made = dict(message)
    content = made.get("content")
    if content is None:
        made["content"] = ""
    elif isinstance(content, list | tuple):
        made["content"] = "".join(_part_text(place, part) for part in content)
    elif not isinstance(content, str):
        raise _unusable(place, f"its content is {type(content).__name__}, not text")
    if made.get("reasoning_content") is None:
        made.pop("reasoning_content", None)
    calls = made.get("tool_calls")
    if calls:
        if not isinstance(calls, list | tuple):
            raise _unusable(place, "its tool_calls are not a list")
        made["tool_calls"] = [_call(place, call) for call in calls]
    else:
        made.pop("tool_calls", None)
    return made


def _part_text(place: int, part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type") == "text":
        text = part.get("text")
        if isinstance(text, str):
            return text
    raise _unusable(place, "only text parts can be read by this model")


def _call(place: int, call: object) -> dict[str, object]:
    if not isinstance(call, Mapping):
        raise _unusable(place, "a tool call is not an object")
    made = dict(call)
    inner = made.get("function")
    function = dict(inner) if isinstance(inner, Mapping) else made
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise _unusable(place, "the arguments of a tool call are not JSON") from None
    if not isinstance(function.get("name"), str) or not isinstance(arguments or {}, Mapping):
        raise _unusable(place, "a tool call needs a name and an object of arguments")
    function["arguments"] = arguments or {}
    if function is not made:
        made["function"] = function
    return made


def _unusable(place: int, why: str) -> RequestError:
    return RequestError(
        f"message {place} cannot be rendered", why=why, try_="correct the message and send it again"
    )
