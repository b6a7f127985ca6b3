"""Argument values of tool calls: text as written, or JSON where the tool's schema says so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn


def argument_schemas(
    tools: Sequence[Mapping[str, object]],
) -> dict[str, Mapping[str, object]]:
    """Return, for each function name, the schemas of its arguments."""
    found: dict[str, Mapping[str, object]] = {}
    for tool in tools:
        inner = tool.get("function")
        function = inner if isinstance(inner, Mapping) else tool
        parameters = function.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if isinstance(properties, Mapping):
            found[str(function.get("name"))] = properties
    return found


def read_value(written: str, schema: object) -> object:
    """Return the value an argument stands for.

    A schema that asks for something other than a text makes ``written`` JSON; without one, or when
    it is no JSON of an allowed kind, the text stays as written, byte for byte.
    """
    allowed = _kinds(schema)
    if not allowed or allowed == {"string"}:
        return written
    try:
        value: object = json.loads(written, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return written
    if isinstance(value, str) or _kind(value).isdisjoint(allowed):
        return written
    return value


def _kinds(schema: object) -> set[str]:
    if not isinstance(schema, Mapping):
        return set()
    listed = schema.get("type")
    if isinstance(listed, str):
        return {listed}
    if isinstance(listed, list | tuple):
        return {str(kind) for kind in listed}
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        if isinstance(choices, list | tuple):
            return {kind for choice in choices for kind in _kinds(choice)}
    values = schema.get("enum")
    return _kinds_of(values) if isinstance(values, list | tuple) else set()


def _kinds_of(values: Iterable[object]) -> set[str]:
    return {kind for value in values for kind in _kind(value)}


def _kind(value: object) -> frozenset[str]:
    # A truth value is an int to Python, so it comes first.
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, float) and not math.isfinite(value):
        return frozenset()
    if isinstance(value, int | float):
        return frozenset({"integer", "number"} if value == int(value) else {"number"})
    if isinstance(value, str):
        return frozenset({"string"})
    if isinstance(value, list):
        return frozenset({"array"})
    return frozenset({"null"} if value is None else {"object"})


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)
