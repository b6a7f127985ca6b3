"""``localglm backends``: the cards of this computer, what could use each, and what is used."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localglm.cli.request_options import Chosen
from localglm.cli.screen import safe
from localglm.settings.load import environment
from localglm.units import size_text

if TYPE_CHECKING:
    from localglm.devices.candidates import Candidate
    from localglm.devices.match import Choice
    from localglm.devices.record import Card, Machine, ProbeResult

_WIDTH = 11
_MARKS = {"fits": "+", "named only": "o", "cannot": "-"}
_WRONG = ("failed", "crashed", "hung", "garbled")


@click.command("backends")
@click.option("--backend", metavar="NAME", help="Choose as if this back end were asked for.")
@click.option("--device", metavar="CARD", help="Choose as if this card were asked for.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--timeout", type=click.FloatRange(0.5, 300.0), default=4.0, show_default=True,
    metavar="SECONDS", help="How long each question to a driver may take.",
)  # fmt: skip
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Keep what the drivers answered in FILE.",
)  # fmt: skip
@click.option(
    "--replay", type=click.Path(dir_okay=False, exists=True, path_type=Path), metavar="FILE",
    help="Choose for the computer recorded in FILE.",
)  # fmt: skip
def command(
    backend: str | None,
    device: str | None,
    as_json: bool,
    timeout: float,
    record: Path | None,
    replay: Path | None,
) -> None:
    """Show the graphics cards of this computer, the back ends for each, and which one is used."""
    from localglm.devices import match, survey  # noqa: PLC0415 - keeps --help light
    from localglm.devices import replay as recordings  # noqa: PLC0415
    from localglm.devices.merge import machine_of  # noqa: PLC0415
    from localglm.engine.devices import BACKENDS  # noqa: PLC0415

    flags = {"backend": backend, "device": device}
    settings = Chosen.of(flags).loaded.settings
    if replay is not None:
        recording = recordings.read(replay)
    else:
        recording = survey.survey(environment(), survey.card_probes(timeout))
    if record is not None:
        record.write_bytes(recordings.write(recording))
    machine = machine_of(recording)
    choice = match.choose(machine, BACKENDS, settings.backend, settings.device)
    if as_json:
        click.echo(json.dumps(_as_json(machine, choice, BACKENDS), indent=1))
        return
    for line in _lines(machine, choice):
        click.echo(_folded(safe(line)))


def _as_json(machine: Machine, choice: Choice, built: tuple[str, ...]) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415 - keeps --help light

    plain = msgspec.to_builtins
    used = {
        "backend": choice.backend,
        "device": choice.card.key if choice.card else None,
        "runtime": choice.runtime,
        "reason": choice.reason,
    }
    return {
        "schema_version": 1,
        "command": "backends",
        "built": list(built),
        "choice": used,
        "suits_best": {**plain(choice.best), "reason": choice.best_reason},
        "cards": plain(machine.cards),
        "candidates": plain(choice.candidates),
        "runtimes": plain(machine.runtimes),
        "notes": list(choice.notes),
        "probes": [
            {"name": p.name, "status": p.status, "seconds": p.seconds, "said": p.said}
            for p in machine.probes.values()
        ],
    }


def _lines(machine: Machine, choice: Choice) -> Iterator[str]:
    name = choice.card.name if choice.card else "the processor"
    yield _row("in use", f"{choice.backend}, on {name}")
    yield _row("because", choice.reason)
    if choice.best.backend != choice.backend or choice.best.card is not None:
        yield from _suits_best(machine, choice)
    yield from _computer(machine)
    for card in machine.cards:
        yield ""
        yield from _card_lines(card, [c for c in choice.candidates if c.card == card.key])
    wrong = [probe for probe in machine.probes.values() if probe.status in _WRONG]
    if wrong or choice.notes:
        yield ""
    for probe in wrong:
        yield _row("trouble", f"{probe.name} {_ended(probe)}")
        if probe.status == "hung":
            yield _row("    try", "--timeout 60, if a driver or torch is slow to start here")
    for note in choice.notes:
        yield _row("note", note)


def _computer(machine: Machine) -> Iterator[str]:
    from localglm.devices.answers import Memory, Processor  # noqa: PLC0415 - keeps --help light
    from localglm.devices.runtimes import answer_of  # noqa: PLC0415

    processor = answer_of(machine.probes.get("processor"), Processor)
    memory = answer_of(machine.probes.get("memory"), Memory)
    if processor is not None:
        cores = f"{processor.physical or processor.logical} cores"
        yield _row("processor", f"{processor.name}, {cores}")
        if processor.library_problem:
            yield _row("trouble", processor.library_problem)
    if memory is not None:
        free = size_text(memory.available_bytes)
        yield _row("memory", f"{size_text(memory.total_bytes)}, {free} free")


def _suits_best(machine: Machine, choice: Choice) -> Iterator[str]:
    cards = {card.key: card for card in machine.cards}
    where = cards[choice.best.card].name if choice.best.card else "the processor"
    yield _row("would suit", f"{choice.best.backend}, on {where}: {choice.best_reason}")


def _card_lines(card: Card, candidates: list[Candidate]) -> Iterator[str]:
    yield _row("card", card.name)
    if card.pci_address is not None or card.uuid is not None:
        yield _row("  address", " ".join(x for x in (card.pci_address, card.uuid) if x))
    kind = {"software": "software, on the processor", "display": "picture only"}
    facts = (card.architecture, kind.get(card.kind, card.kind), _memory(card))
    yield _row("  chip", ", ".join(fact for fact in facts if fact))
    seen = f"seen by {', '.join(card.apis)}"
    yield _row("  driver", f"{card.driver}, {seen}" if card.driver else seen)
    for candidate in candidates:
        built = "" if candidate.is_built else "; this version has no such back end yet"
        mark = f"  {_MARKS[candidate.standing]} {candidate.backend}"
        usable = candidate.standing != "cannot"
        yield _row(mark, candidate.reason + (built if usable else ""))
        if candidate.remedy:
            yield _row("    try", candidate.remedy)
    for note in card.notes:
        yield _row("  note", note)


def _memory(card: Card) -> str:
    if card.memory_bytes is None:
        return ""
    text = f"{size_text(card.memory_bytes)} of its own"
    if card.kind == "integrated" and card.shared_bytes:
        text += f" and {size_text(card.shared_bytes)} of the system's"
    if card.free_bytes is not None:
        counted = " as this program alone sees it" if card.free_trust == "own process" else ""
        text += f", {size_text(card.free_bytes)} free{counted}"
    return text


def _ended(probe: ProbeResult) -> str:
    words = {"garbled": "gave no usable answer", "hung": "hung"}
    return f"{words.get(probe.status, probe.status)}: {probe.said}"


def _folded(line: str) -> str:
    """Break a line between words where a terminal would break it anywhere."""
    if not sys.stdout.isatty() or not line:
        return line
    width = max(shutil.get_terminal_size().columns - 1, 2 * _WIDTH)
    return textwrap.fill(
        line, width, subsequent_indent=" " * (_WIDTH + 1), break_long_words=False,
        break_on_hyphens=False, drop_whitespace=True,
    )  # fmt: skip


def _row(label: str, text: str) -> str:
    return f"{label:<{_WIDTH}} {text}"
