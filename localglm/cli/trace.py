"""``localglm trace``: write every number of a run to an archive, to compare back ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

_BACKENDS = ("reference", "cpu")


@click.command("trace")
@click.argument("model", type=click.Path(path_type=Path))
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
@click.option("--threads", type=click.IntRange(min=1), help="Worker threads; default: all cores.")
@click.option("--isa", help="Instruction set of the CPU kernels; default: the best one here.")
def command(
    model: Path, ids_file: Path, out: Path, backend: str, chunk: int | None, generate: int,
    layers: bool, feed: Path | None, exact_activations: bool, threads: int | None, isa: str | None,
) -> None:  # fmt: skip
    """Run MODEL over token ids and write its numbers to an archive.

    Arrays: logits [tokens, vocabulary], hidden, gen_ids, gen_logits, the draft block's mtp.*, and
    with --layers everything in between. Caches are float32.
    """
    from localglm.engine import devices, trace  # noqa: PLC0415 - keeps --help light

    ids = trace.read_ids(ids_file)
    request = trace.TraceRequest(
        ids=ids,
        chunk=chunk,
        generate=generate,
        layers=layers,
        feed=None if feed is None else trace.read_feed(feed, ids),
    )
    choice = devices.DeviceChoice(
        backend=backend, threads=threads, isa=isa, exact_activations=exact_activations
    )
    with devices.opened(choice) as device:
        arrays = trace.trace_model(model, request, device, _show_progress(len(ids)))
    trace.save(out, arrays)
    click.echo(f"{len(arrays)} arrays for {len(ids)} tokens written to {out}", err=True)


def _show_progress(total: int) -> Callable[[int], None]:
    return lambda done: click.echo(f"\r{done}/{total} tokens", nl=done == total, err=True)
