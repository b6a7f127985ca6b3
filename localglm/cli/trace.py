"""``localglm trace``: write every number of a run to an archive, to compare back ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localglm.cli.model_argument import model_argument
from localglm.units import duration_text

if TYPE_CHECKING:
    from localglm.cli.screen import Screen

_BACKENDS = ("reference", "cpu")


@click.command("trace")
@model_argument
@click.option("--ids", "ids_file", required=True, type=click.Path(path_type=Path),
              help="JSON file with the prompt's token ids.")  # fmt: skip
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Archive to write.")
@click.option("--backend", type=click.Choice(_BACKENDS), default="cpu", show_default=True,
              help="Where to compute: the float64 definition or the CPU kernels.")  # fmt: skip
@click.option("--chunk", type=click.IntRange(min=1), help="Tokens per pass; default: all at once.")
@click.option("--generate", type=click.IntRange(min=0), default=0, show_default=True,
              help="Greedy tokens to add after the prompt.")  # fmt: skip
@click.option("--layers", is_flag=True, help="Also write every intermediate of every layer.")
@click.option("--feed", type=click.Path(path_type=Path),
              help="Recorded archive: its sublayer inputs and choices replace ours.")  # fmt: skip
@click.option("--exact-activations", is_flag=True,
              help="Keep activations in float on every storage type.")  # fmt: skip
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Threads; default: the fast physical cores, at most the quota.",
)
@click.option("--isa", help="Instruction set of the CPU kernels; default: the best one here.")
def command(
    model: Path, ids_file: Path, out: Path, backend: str, chunk: int | None, generate: int,
    layers: bool, feed: Path | None, exact_activations: bool, threads: int | None, isa: str | None,
) -> None:  # fmt: skip
    """Run MODEL over token ids and write its numbers to an archive.

    Arrays: logits [tokens, vocabulary], hidden, gen_ids, gen_logits, the draft block's mtp.*, and
    with --layers everything in between. Caches are float32.
    """
    from localglm.cli.screen import Screen  # noqa: PLC0415 - keeps --help light
    from localglm.engine import devices, trace, trace_files  # noqa: PLC0415

    target = trace_files.check_output(out)
    ids = trace_files.read_ids(ids_file)
    recorded = None if feed is None else trace_files.read_feed(feed, ids)
    request = trace.TraceRequest(
        ids=ids, chunk=chunk, generate=generate, layers=layers, feed=recorded
    )
    choice = devices.DeviceChoice(
        backend=backend, threads=threads, isa=isa, exact_activations=exact_activations
    )
    screen = Screen()
    with devices.opened(choice) as device:
        arrays = trace.trace_model(model, request, device, _progress(screen, len(ids) + generate))
    trace_files.save(target, arrays)
    screen.line(f"{len(arrays)} arrays for {len(ids)} tokens written to {out}")


def _progress(screen: Screen, total: int) -> Callable[[int], None]:
    """Return a callback that shows tokens done, rate and time left."""
    start = time.monotonic()

    def show(done: int) -> None:
        rate = done / max(time.monotonic() - start, 1e-6)
        left = duration_text((total - done) / rate)
        screen.status(f"{done} of {total} tokens, {rate:.1f} tok/s, {left} left")

    return show
