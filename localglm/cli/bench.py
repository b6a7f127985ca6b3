"""``localglm bench``: how fast a model reads and writes here."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localglm.cli.model_argument import model_argument
from localglm.cli.request_options import Chosen, engine_options
from localglm.errors import UsageError
from localglm.units import size_text

if TYPE_CHECKING:
    from localglm.engine.client import Engine
    from localglm.engine.protocol import Done, ExpertCounts, Opened, OpenModel

_WARM_PROMPT = 32
_WARM_GENERATE = 2


@click.command("bench")
@model_argument
@click.option("--prompt", type=click.IntRange(min=1), default=512, show_default=True,
              help="Prompt tokens to read.")  # fmt: skip
@click.option("--generate", type=click.IntRange(min=0), default=32, show_default=True,
              help="Tokens to write.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@engine_options
def command(model: Path, prompt: int, generate: int, as_json: bool, **flags: Any) -> None:
    """Measure MODEL: tokens read and written per second, after a warm-up run.

    The prompt is random ordinary tokens, nothing is reused between the runs, and no rate is given
    without tokens behind it. The first written token comes with the prompt and is not timed.
    """
    from localglm.cli.screen import Screen, tell_loading  # noqa: PLC0415 - keeps --help light
    from localglm.engine.client import Engine  # noqa: PLC0415

    chosen = Chosen.of(flags)
    request = _open_request(chosen, model, prompt + generate)
    with Screen() as screen, Engine() as engine:
        opened = engine.open_model(request, lambda event: tell_loading(event, screen))
        for note in opened.notes:
            screen.line(f"note: {note}")
        screen.status("warming up")
        warm = min(prompt, _WARM_PROMPT), min(generate, _WARM_GENERATE)
        _measure(engine, *warm, session="warm-up")
        engine.drop(session="warm-up")
        screen.status("measuring")
        done = _measure(engine, prompt, generate, session="bench")
        result = _result(opened, done, engine.stats().experts)
        if as_json:
            screen.json(json.dumps(result))
        else:
            screen.answer("".join(f"{line}\n" for line in _lines(result)))


def _open_request(chosen: Chosen, model: Path, tokens: int) -> OpenModel:
    """Return the request that opens a model with room for ``tokens``.

    Raises: UsageError when the context that was asked for has less.
    """
    from msgspec.structs import replace  # noqa: PLC0415

    request = chosen.open_model(model, tokens)
    if request.context is not None and request.context < tokens:
        raise UsageError(
            f"--prompt and --generate need {tokens} tokens and the context holds {request.context}",
            why=f"the context was set by {chosen.loaded.origins['engine.context']}",
            try_=f"--context {tokens}, or fewer tokens",
        )
    return replace(request, needs_text=False)


def _measure(engine: Engine, prompt: int, generate: int, session: str) -> Done:
    """Run one request; the seed differs per session, so nothing of one serves the other."""
    from localglm.engine import protocol as p  # noqa: PLC0415

    generation = engine.generate(
        p.Generate(
            request=0,
            prompt=p.RandomPrompt(prompt, len(session)),
            session=session,
            sampling=p.Sampling(temperature=0.0),
            max_tokens=generate,
            ignore_end=True,
            step_times=True,
        )
    )
    for _ in generation:
        pass
    assert generation.done is not None, "a request ends with Done or an error"
    return generation.done


def _result(opened: Opened, done: Done, experts: ExpertCounts | None) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 - keeps --help light

    timings, steps = done.timings, done.timings.steps_s
    step_s = statistics.median(steps) if steps else None
    return {
        "schema_version": 1,
        "command": "bench",
        "model": opened.path,
        "backend": opened.backend,
        "context": opened.context,
        "prompt_tokens": done.usage.read,
        "prefill_s": timings.prefill_s,
        "prefill_tokens_per_s": timings.prefill_tokens_per_s,
        "generated_tokens": done.usage.generated,
        "timed_steps": len(steps),
        "decode_median_s": step_s,
        "decode_tokens_per_s": None if step_s is None else 1.0 / step_s,
        "weight_bytes": opened.weight_bytes,
        "weight_bytes_per_token": opened.token_bytes,
        "weight_gb_per_s": None if step_s is None else opened.token_bytes / step_s / 1e9,
        "planned_bytes": None if opened.plan is None else opened.plan.process,
        "experts": None if opened.plan is None else opened.plan.experts,
        "experts_read": None if experts is None else to_builtins(experts),
    }


def _lines(result: dict[str, Any]) -> list[str]:
    read, rate = result["prompt_tokens"], result["prefill_tokens_per_s"]
    tokens = "1 token" if read == 1 else f"{read} tokens"
    lines = [
        f"model    {size_text(result['weight_bytes'])} of weights on {result['backend']}",
        f"prefill  {tokens} in {result['prefill_s']:.3f} s: {rate:.1f} tok/s",
    ]
    if result["experts_read"] is not None:
        lines.append(_experts_line(result["experts_read"]))
    if result["decode_tokens_per_s"] is None:
        lines.append(f"decode   not measured: {result['timed_steps']} timed steps")
        return lines
    lines.append(
        f"decode   {result['decode_tokens_per_s']:.2f} tok/s (median of"
        f" {result['timed_steps']} steps of {1000 * result['decode_median_s']:.2f} ms)"
    )
    lines.append(
        f"weights  {size_text(result['weight_bytes_per_token'])} per token:"
        f" {result['weight_gb_per_s']:.2f} GB/s"
    )
    return lines


def _experts_line(counts: dict[str, Any]) -> str:
    """Say how reading experts from the disk went, warm-up and prompt included."""
    wanted = counts["hits"] + counts["foreseen"] + counts["misses"]
    line = f"experts  {size_text(counts['bytes_read'])} read from the disk"
    if counts["bytes_per_s"]:
        line += f" at {counts['bytes_per_s'] / 1e9:.2f} GB/s"
    if wanted:
        line += f"; {counts['hits'] / wanted:.0%} of those wanted were in memory"
        line += f", {counts['foreseen'] / wanted:.0%} on their way"
    return line
