"""Choose the card and the back end for this computer, and keep why, for each one that was not.

Two answers come back: what suits the computer once every back end exists (``best``), and what this
version of the program, with the back ends it carries, really uses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from localglm.devices.candidates import Candidate, candidates_of
from localglm.devices.naming import card_named
from localglm.devices.record import Card, Machine
from localglm.devices.table import BACKENDS, Backend, row_of
from localglm.devices.visibility import explained
from localglm.errors import DeviceError
from localglm.units import size_text

AUTO = "auto"
_ON_PROCESSOR: tuple[Backend, ...] = ("cpu", "reference")
_STANDINGS = ("fits", "named only", "cannot")
_PROCESSOR_REASON = "the processor always works"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is in force, and why; ``best`` is what would be with every back end built.

    ``candidates`` stand in the order of their rank; ``notes`` are variables and oddities to know.
    """

    backend: Backend
    card: Card | None
    runtime: str | None
    reason: str
    best: Candidate
    best_reason: str
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...] = ()


def choose(
    machine: Machine,
    available: Collection[str],
    backend: str = AUTO,
    device: str = AUTO,
    measured: Mapping[str, float] | None = None,
) -> Choice:
    """Choose by rank, or obey what is named.

    ``available`` are the back ends this version carries; ``measured`` gives bytes per second by the
    key of a card where they are known.
    Raises: DeviceError when what is named cannot be used, with the reasons.
    """
    ranked = rank(machine, available, measured or {})
    cards = {card.key: card for card in machine.cards}
    wanted = _asked_for(ranked, machine, backend, device)
    best, best_reason = _best(ranked, cards, measured or {})
    if backend == AUTO and device == AUTO:
        taken = next((c for c in ranked if c.standing == "fits" and c.is_built), None)
        assert taken is not None  # the processor stands at the end
        reason = best_reason if taken == best else _second_best(best, cards, taken)
    else:
        taken = _named(wanted, available, backend, device)
        reason = f"asked for by name: {taken.reason}"
    card = cards[taken.card] if taken.card is not None else None
    return Choice(
        taken.backend, card, taken.runtime, reason, best, best_reason, tuple(ranked),
        explained(machine),
    )  # fmt: skip


def rank(
    machine: Machine, available: Collection[str], measured: Mapping[str, float]
) -> list[Candidate]:
    """Return every candidate: those that fit, best first, the processor, the named, the rest."""
    found = [(card, c) for card in machine.cards for c in candidates_of(card, machine)]

    def order(pair: tuple[Card, Candidate]) -> tuple[object, ...]:
        return (
            _STANDINGS.index(pair[1].standing),
            *_merit(pair[0], measured),
            pair[1].backend == "wgpu",
        )

    ordered = [candidate for _, candidate in sorted(found, key=order)]
    fitting = [c for c in ordered if c.standing == "fits"]
    others = [c for c in ordered if c.standing != "fits"]
    processor = Candidate("cpu", None, "fits", _PROCESSOR_REASON, runtime="cpu")
    every = [*fitting, processor, *others]
    return [replace(c, is_built=c.backend in available) for c in every]


def _merit(card: Card, measured: Mapping[str, float]) -> tuple[object, ...]:
    """Order cards: discrete, with kernels for the chip, more memory, more bandwidth, address."""
    return (
        card.kind in {"integrated", "software", "display"},
        row_of(card.architecture) is None,
        -(card.usable_bytes >> 30),
        -measured.get(card.key, 0.0),
        card.key,
    )


def _best(
    ranked: Sequence[Candidate], cards: Mapping[str, Card], measured: Mapping[str, float]
) -> tuple[Candidate, str]:
    """Return what suits best, and what put it before the next card."""
    best = next(c for c in ranked if c.standing == "fits")
    if best.card is None:
        return best, _why_processor(ranked, cards)
    card = cards[best.card]
    rivals = (c.card for c in ranked if c.card not in {None, best.card})
    rival = next((cards[key] for key in rivals if key and cards[key].kind != "display"), None)
    if rival is None or rival.kind == "software":
        return best, best.reason
    return best, f"{best.reason}; {_why_before(card, rival, ranked, measured)}"


def _why_before(
    card: Card, rival: Card, ranked: Sequence[Candidate], measured: Mapping[str, float]
) -> str:
    if all(c.standing == "cannot" for c in ranked if c.card == rival.key):
        return f"{rival.name} cannot be used"
    first, second = _merit(card, measured), _merit(rival, measured)
    words = (
        "a card before the processor's own graphics",
        "it has kernels of its own",
        f"it has more memory ({_memory(card)} against {_memory(rival)})",
        "it was measured faster",
    )
    for number, why in enumerate(words):
        if first[number] != second[number]:
            return f"before {rival.name}: {why}"
    return f"equal to {rival.name} ({rival.key}): the lower address is taken"


def _memory(card: Card) -> str:
    return size_text(card.usable_bytes) if card.usable_bytes else "unknown"


def _why_processor(ranked: Sequence[Candidate], cards: Mapping[str, Card]) -> str:
    kinds = {cards[c.card].kind for c in ranked if c.card is not None} - {"display"}
    if not kinds:
        return "there is no graphics card"
    if kinds == {"software"}:
        return "there is no graphics card, only software that stands in for one"
    if any(c.standing == "named only" and cards[c.card or ""].kind == "integrated" for c in ranked):
        return "the only usable graphics is the processor's own, which is used when it is named"
    return "no card can be used"


def _second_best(best: Candidate, cards: Mapping[str, Card], taken: Candidate) -> str:
    """Say why this version does not use what suits best."""
    name = cards[best.card].name if best.card else "the processor"
    used = "the processor computes" if taken.card is None else f"{cards[taken.card].name} is next"
    return f"this version has no {best.backend} back end yet, which {name} would use; {used}"


def _asked_for(
    ranked: Sequence[Candidate], machine: Machine, backend: str, device: str
) -> list[Candidate]:
    """Return the candidates a name leaves.

    Raises: DeviceError for a name that means nothing, or two that do not go together.
    """
    if backend not in (AUTO, *BACKENDS):
        raise DeviceError(
            f"there is no back end named {backend!r}",
            why=f"the back ends are {', '.join(BACKENDS)}",
            try_="localglm backends shows what suits this computer",
        )
    left = list(ranked)
    if backend == "reference":
        left = [Candidate("reference", None, "named only", "slow, and exact by definition")]
    elif backend != AUTO:
        left = [c for c in left if c.backend == backend]
    if device == AUTO:
        return left
    card = card_named(device, machine.cards)
    if backend in _ON_PROCESSOR:
        raise DeviceError(
            f"the {backend} back end cannot use {card.name}",
            why="it computes on the processor",
            try_="leave --device or --backend out",
        )
    return [c for c in left if c.card == card.key]


def _named(
    wanted: Sequence[Candidate], available: Collection[str], backend: str, device: str
) -> Candidate:
    """Return the best of the named candidates that can be used.

    Raises: DeviceError with the reason of each.
    """
    usable = [c for c in wanted if c.standing != "cannot"]
    built = [c for c in usable if c.backend in available]
    if built:
        return replace(built[0], is_built=True)
    asked = " ".join(
        f"--{name} {value}"
        for name, value in (("backend", backend), ("device", device))
        if value != AUTO
    )
    if usable or (backend != AUTO and backend not in available):
        names = dict.fromkeys(c.backend for c in usable) or (backend,)
        missing = " and no ".join(f"{name}" for name in names)
        raise DeviceError(
            f"{asked} cannot be used",
            why=f"this version has no {missing} back end yet; it computes on"
            f" {' or '.join(sorted(available))}",
            try_="leave it out; localglm backends shows what suits this computer",
        )
    reasons = "; ".join(f"{c.backend} for {c.card}: {c.reason}" for c in wanted)
    remedy = next((c.remedy for c in wanted if c.remedy), "")
    raise DeviceError(
        f"{asked} cannot be used",
        why=reasons or "no card of this computer is one for it",
        try_=remedy or "leave it out; localglm backends shows what suits this computer",
    )
