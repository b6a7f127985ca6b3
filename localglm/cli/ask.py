"""``localglm ask``: one prompt, one answer; made for pipes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localglm.cli.model_argument import model_argument
from localglm.cli.request_options import Chosen, answer_options, engine_options, readable
from localglm.errors import UsageError

if TYPE_CHECKING:
    from localglm.cli.answering import Answer
    from localglm.engine.protocol import Generate, Message, Opened

_INTERRUPTED = 130


@click.command("ask")
@model_argument
@click.argument("prompt", required=False)
@answer_options
@click.option("--show-thinking", is_flag=True, help="Write the thinking to standard error.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object when it is done.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, notes or figures.")
@engine_options
def command(model: Path, prompt: str | None, **flags: Any) -> None:
    """Ask MODEL once and write the answer to standard output.

    MODEL is a GGUF file, any shard of a split file, a folder, or the word demo.
    Without PROMPT, or with "-", the prompt is read from standard input. Ctrl-C ends the answer and
    keeps what was written.
    """
    from localglm.cli.screen import ReaderGoneError, Screen  # noqa: PLC0415 - keeps --help light
    from localglm.engine.client import Engine  # noqa: PLC0415

    chosen = Chosen.of(flags)
    request = _request(chosen, _prompt(prompt))
    with Screen(is_quiet=flags["quiet"]) as screen, Engine() as engine:
        try:
            is_cancelled = _run(engine, model, chosen, request, screen)
        except ReaderGoneError:
            screen.abandon_output()
            return
    if is_cancelled:
        sys.exit(_INTERRUPTED)


def _run(engine: Any, model: Path, chosen: Chosen, request: Generate, screen: Any) -> bool:
    """Answer one request; returns whether the user ended it."""
    from localglm.cli.answering import play  # noqa: PLC0415
    from localglm.cli.screen import closing_text, tell_loading  # noqa: PLC0415

    as_json = chosen.flags["as_json"]
    opened = engine.open_model(
        chosen.open_model(model), lambda event: tell_loading(event, screen, is_brief=True)
    )
    for note in opened.notes:
        screen.line(f"note: {note}")
    screen.label(thinking="thinking: ")
    answer = play(
        engine.generate(request),
        screen,
        shows_answer=not as_json,
        shows_thinking=chosen.flags["show_thinking"],
    )
    assert answer.done is not None, "a request ends with Done or an error"
    if as_json:
        text = json.dumps(_as_json(answer, opened), ensure_ascii=True)
        screen.json(text.replace("\x7f", "\\u007f"))
    screen.line(closing_text(answer.done))
    return answer.done.reason == "cancelled"


def _prompt(given: str | None) -> str:
    """Return the prompt from the command line or standard input.

    Raises: UsageError when there is none, or it is not UTF-8.
    """
    if given is not None and given != "-":
        text = readable("the prompt", given)
    else:
        if sys.stdin is None or (given is None and sys.stdin.isatty()):
            raise UsageError(
                "no prompt was given",
                why="standard input is a terminal, or closed",
                try_='localglm ask MODEL "your question", or pipe a text in',
            )
        try:
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"standard input is not UTF-8 at byte {error.start}",
                why=error.reason,
                try_="convert the text, for example with iconv -t utf-8",
            ) from error
    if not text.strip():
        raise UsageError("the prompt is empty", why="nothing but white space was given",
                         try_="give some text")  # fmt: skip
    return text.removesuffix("\n").removesuffix("\r")


def _request(chosen: Chosen, prompt: str) -> Generate:
    from localglm.engine import protocol as p  # noqa: PLC0415
    from localglm.engine.checks import pack  # noqa: PLC0415

    settings = chosen.loaded.settings
    messages: list[Message] = [p.Message(role="user", content=prompt)]
    if system := chosen.system():
        messages.insert(0, p.Message(role="system", content=system))
    request = chosen.generate(p.ChatPrompt(tuple(messages), settings.think, settings.off_effort))
    pack(request)  # what is too large to be sent is refused before the model is loaded
    return request


def _as_json(answer: Answer, opened: Opened) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415

    done = answer.done
    assert done is not None
    return {
        "schema_version": 1,
        "command": "ask",
        "answer": answer.answer,
        "thinking": answer.thinking,
        "tool_calls": answer.tool_calls,
        "finish_reason": done.reason,
        "matched_stop": done.matched_stop,
        "seed": done.seed,
        "usage": to_builtins(done.usage),
        "timings": {k: v for k, v in to_builtins(done.timings).items() if k != "steps_s"},
        "notices": answer.notices,
        "model": {
            "path": opened.path,
            "architecture": opened.architecture,
            "backend": opened.backend,
            "context": opened.context,
            "notes": list(opened.notes),
        },
    }
