"""The process that runs chat templates: a file is untrusted, and so is its template.

Started by path with ``python -I``, it imports only the standard library and jinja2. Requests and
replies are JSON with an 8-byte length in front. Memory is limited by the system where it can, time
by a watchdog thread that needs no interpreter lock, output while it is produced. It ends when its
standard input does.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
from datetime import datetime
from typing import Any, BinaryIO, NoReturn

from jinja2 import nodes
from jinja2.exceptions import TemplateError, TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

if sys.platform != "win32":
    import resource


class RefusalError(Exception):
    """A template called ``raise_exception``."""


class OutputLimitError(Exception):
    """A template wrote more than it may."""


class GenerationTag(Extension):
    """``{% generation %}``: marks answers for training tools; here its body is simply rendered."""

    tags = {"generation"}  # noqa: RUF012  the base class declares it as a plain attribute

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the body between the two tags."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON without HTML escapes, as chat templates expect."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def refuse(message: object = "") -> NoReturn:
    """Let a template refuse a conversation."""
    raise RefusalError(str(message))


def now(pattern: str) -> str:
    """Return the local time as a template asks for it."""
    return datetime.now().astimezone().strftime(pattern)


def environment() -> ImmutableSandboxedEnvironment:
    """Build the sandbox: no loader, so nothing can be imported or included."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        extensions=["jinja2.ext.loopcontrols", GenerationTag],
    )
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = now
    return made


def render(request: dict[str, Any], templates: dict[str, Any]) -> dict[str, object]:
    """Render one template, compiled anew only when it is another one."""
    source = request["source"]
    template = templates.get(source)
    if template is None:
        templates.clear()
        template = templates[source] = environment().from_string(source)
    parts: list[str] = []
    room = request["output"]
    for part in template.generate(**request["variables"]):
        room -= len(part)
        if room < 0:
            raise OutputLimitError
        parts.append(part)
    return {"text": "".join(parts)}


def answer(request: dict[str, Any], templates: dict[str, Any]) -> dict[str, object]:
    """Return the reply to one request; every failure becomes a named one."""
    try:
        return render(request, templates)
    except Exception as error:  # noqa: BLE001  a template can raise whatever Python can
        return describe(error)


def describe(error: Exception) -> dict[str, object]:
    """Return the reply for a failure: its kind and, where it helps, its message."""
    if isinstance(error, TemplateSyntaxError):
        return {"error": "syntax", "message": f"line {error.lineno}: {str(error.message)[:300]}"}
    silent = {OutputLimitError: "output", MemoryError: "memory", RecursionError: "depth"}
    for kind, name in silent.items():
        if isinstance(error, kind):
            return {"error": name, "message": ""}
    if isinstance(error, RefusalError):
        return {"error": "refused", "message": str(error)[:500]}
    named = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
    return {"error": "template", "message": named + str(error)[:300]}


def address_space() -> int | None:
    """Return the bytes of address space in use, or None where the system does not tell."""
    held: int | None = None
    if sys.platform != "win32":
        try:
            with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  pathlib starts slowly
                held = int(file.read().split()[0]) * resource.getpagesize()
        except OSError:
            held = None
    return held


def limit_memory(total: int) -> None:
    """Limit the address space to ``total`` bytes, and let this process write no file."""
    if sys.platform != "win32":
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        soft = total if hard == resource.RLIM_INFINITY else min(total, hard)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def write(stream: BinaryIO, reply: dict[str, object]) -> None:
    """Send one reply."""
    data = json.dumps(reply).encode("ascii")
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def main() -> None:
    """Answer requests until standard input ends."""
    # An interrupt from the terminal is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    templates: dict[str, Any] = {}
    environment()
    base = address_space()
    write(sink, {"text": "ready"})
    while len(head := source.read(8)) == 8:
        request = json.loads(source.read(int.from_bytes(head, "little")))
        if base is not None:
            limit_memory(base + request["memory"])
        faulthandler.dump_traceback_later(request["seconds"], exit=True)
        reply = answer(request, templates)
        faulthandler.cancel_dump_traceback_later()
        write(sink, reply)


if __name__ == "__main__":
    main()
