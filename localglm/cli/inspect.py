"""``localglm inspect``: what a model file holds, read from its header alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localglm.cli.model_argument import model_argument
from localglm.cli.request_options import Chosen, engine_options
from localglm.errors import ModelFileError
from localglm.units import count_text, size_text

if TYPE_CHECKING:
    from localglm.engine.protocol import AccountReply
    from localglm.model.describe import Description


@click.command("inspect")
@model_argument
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--memory-plan", "with_plan", is_flag=True,
              help="Add what opening it would take of memory and disk.")  # fmt: skip
@engine_options
def command(model: Path, as_json: bool, with_plan: bool, **flags: Any) -> None:
    """Check MODEL and print what it holds; exits with 3 when it cannot answer questions.

    MODEL is a GGUF file, any shard of a split file, a folder, or the word demo.
    Only headers are read.
    """
    from localglm.gguf import open_model  # noqa: PLC0415 - keeps --help light
    from localglm.model.describe import describe  # noqa: PLC0415
    from localglm.text.readiness import check_text  # noqa: PLC0415

    with open_model(model) as file:
        description = describe(file)
        text = check_text(file.metadata)
    notes = dict.fromkeys((*description.notes, *text.notes))
    account = _account(model, flags) if with_plan else None
    if as_json:
        about = {**description.as_json(), "notes": list(notes), "problems": list(text.problems)}
        if account is not None:
            about["memory"] = _account_json(account)
        data = {"schema_version": 1, "command": "inspect", **about}
        click.echo(json.dumps(data, indent=1))
    else:
        for line in _lines(description, text.problems, notes):
            click.echo(line)
        if account is not None:
            from localglm.engine.plan_text import plan_lines  # noqa: PLC0415

            click.echo(f"\nmemory for a conversation of {account.context:,} tokens")
            for line in plan_lines(account.plan):
                click.echo(line)
    if text.problems:
        sys.exit(ModelFileError.exit_code)


def _account(model: Path, flags: Mapping[str, Any]) -> AccountReply:
    """Ask an engine process, whose own size is part of the answer.

    Raises: MemoryShortError when the model would be refused.
    """
    from msgspec.structs import replace  # noqa: PLC0415 - keeps --help light

    from localglm.engine.client import Engine  # noqa: PLC0415

    request = replace(Chosen.of(flags).open_model(model), needs_text=False)
    with Engine() as engine:
        return engine.account(request)


def _account_json(account: AccountReply) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps --help light

    plan = account.plan
    sums = {"process_bytes": plan.process, "file_bytes": plan.total("file")}
    told: dict[str, Any] = to_builtins(plan)
    return {"context": account.context, **sums, **told}


def _lines(about: Description, problems: Sequence[str], notes: Iterable[str]) -> Iterator[str]:
    parameters, layers, tokenizer = about.parameters, about.layers, about.tokenizer
    count = len(about.files)
    yield _row("model", _safe(about.name or Path(about.files[0]).name))
    yield _row("architecture", _safe(about.architecture))
    yield _row("files", f"{count}, {size_text(about.file_bytes)}")
    yield _row(
        "parameters",
        f"{count_text(parameters.trunk)}, {count_text(parameters.per_token)} used per token",
    )
    draft = f"yes, {count_text(parameters.draft)} parameters" if about.drafts else "no"
    yield _row("draft block", draft)
    yield _row(
        "layers",
        f"{layers.trunk}: {layers.linear} linear and {layers.latent} latent attention;"
        f" {layers.dense} dense and {layers.routed} with experts",
    )
    moe = about.geometry.moe
    yield _row("experts", f"{moe.experts} per layer, {moe.used} used per token")
    yield _row("context", f"{about.geometry.context_length:,} tokens")
    yield _row("tokenizer", _tokenizer(about))
    yield _row("chat template", "yes" if tokenizer.has_template else "no")
    yield _row("missing", ", ".join(about.missing) or "nothing")
    yield _row("answers", "no" if problems else "yes")
    for problem in problems:
        yield f"problem: {_safe(problem)}"
    yield ""
    yield f"{'role':<22}{'type':<10}{'tensors':>8}{'parameters':>14}{'bytes':>12}"
    for item in about.storage:
        row = f"{item.role:<22}{item.type:<10}{item.tensors:>8}"
        yield f"{row}{count_text(item.parameters):>14}{size_text(item.nbytes):>12}"
    yield ""
    for note in notes:
        yield f"note: {_safe(note)}"


def _tokenizer(about: Description) -> str:
    facts = about.tokenizer
    if facts.tokens is None:
        return "none"
    name = " ".join(_safe(part) for part in (facts.model, facts.pre) if part)
    merges = f", {facts.merges:,} merges" if facts.merges is not None else ""
    return f"{name}, {facts.tokens:,} tokens{merges}, {about.geometry.vocabulary:,} rows"


def _row(label: str, text: str) -> str:
    return f"{label:<15}{text}"


def _safe(text: str) -> str:
    """Show text from the file without control characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
