"""Texts that hold many keys with a value each: lists, logs, tables, JSON and prose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.data.pick import Pick
from training.data.topics import COLOURS, NAMES, Topic

FORMS = ("list", "log", "table", "json", "prose", "story")
_ENTRY_TOKENS = {"list": 9, "log": 19, "table": 9, "json": 9, "prose": 13, "story": 13}
_FILLER_TOKENS = 11
_SPREADS = (1, 2, 4, 8, 16, 32)
_SPREAD_ROOM = 80
_LEVELS = ("INFO", "WARN", "DEBUG")
_MOST_NUMBERS = 1000


@dataclass(frozen=True, slots=True)
class Document:
    """How one text is written: its form, what its keys and values are, and what they are called."""

    form: str
    keys: str
    values: str
    attribute: str
    topic: Topic
    spread: int

    def entry(self, key: str, value: str) -> str:
        """Return the line or sentence of one key, without what stands around it."""
        if self.form == "list":
            return f"- {key}: {value}"
        if self.form == "log":
            return f"{key} {self.attribute}={value}"
        if self.form == "table":
            return f"| {key} | {value} |"
        if self.form == "json":
            return f'"{key}": {value}' if value.isdigit() and value[0] != "0" else (
                f'"{key}": "{value}"'
            )  # fmt: skip
        return f"The {self.attribute} of {key} is {value}."

    def text(self, pick: Pick, entries: Sequence[tuple[str, str]]) -> str:
        """Return the whole text."""
        lines = [self.entry(key, value) for key, value in entries]
        writers: dict[str, Callable[[Pick, list[str]], str]] = {
            "log": _log, "table": self._table, "json": _json, "prose": _prose, "story": self._story,
        }  # fmt: skip
        return writers.get(self.form, _plain)(pick, lines)

    def _table(self, _pick: Pick, lines: list[str]) -> str:
        return "\n".join((f"| entry | {self.attribute} |", "| --- | --- |", *lines))

    def _story(self, pick: Pick, lines: list[str]) -> str:
        counts = [self.spread] * len(lines)
        # Fillers move from one gap to another, so that the length stays what was planned.
        for place in range(len(lines) // 2):
            moved = pick.below(self.spread + 1)
            counts[place] += moved
            counts[-1 - place] -= moved
        told: list[str] = []
        for line, count in zip(lines, pick.some(counts, len(counts)), strict=True):
            told += [filler(pick, self.topic) for _ in range(count)]
            told.append(line)
        return " ".join(told)


def _plain(_pick: Pick, lines: list[str]) -> str:
    return "\n".join(lines)


def _prose(_pick: Pick, lines: list[str]) -> str:
    return " ".join(lines)


def _json(_pick: Pick, lines: list[str]) -> str:
    return "{\n" + ",\n".join(lines) + "\n}"


def _log(pick: Pick, lines: list[str]) -> str:
    second = pick.below(40_000)
    written = []
    for line in lines:
        second += 1 + pick.below(30)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        written.append(f"{clock} {pick.of(_LEVELS)} {line}")
    return "\n".join(written)


def filler(pick: Pick, topic: Topic) -> str:
    """Return a sentence without any key; some hold numbers that lead astray."""
    person, action, thing = pick.of(topic.people), pick.of(topic.actions), pick.of(topic.things)
    if pick.chance(0.3):
        return f"The {person} {action} {pick.within(2, 999)} pieces of {thing}."
    return f"The {person} {action} the {thing} in the {pick.of(topic.places)}."


def choose_document(pick: Pick, topic: Topic, room: int, *, may_have_few_values: bool) -> Document:
    """Choose a form, and keys of which there are enough to fill ``room`` tokens."""
    form = pick.of(FORMS)
    entry_tokens, spread = _ENTRY_TOKENS[form], 0
    if form == "story":
        spread = pick.of([s for s in _SPREADS if s <= room // _SPREAD_ROOM] or _SPREADS[:1])
        entry_tokens += spread * _FILLER_TOKENS
    count_at_most = room // entry_tokens
    kinds = ["number", "numbered thing", "numbered thing"]
    if count_at_most > _MOST_NUMBERS:
        kinds = ["numbered thing"]
    elif count_at_most <= len(topic.things):
        kinds += ["thing", "thing"]
        kinds += ["name"] if count_at_most <= len(NAMES) else []
    elif count_at_most <= len(topic.things) * len(COLOURS):
        kinds += ["coloured thing"]
    few = (2, 0.5, 0.5) if may_have_few_values else (0, 0, 0)
    values = pick.weighted(("three", "long", "two", "colour", "name"), (6, 1, *few))
    return Document(form, pick.of(kinds), values, pick.of(topic.numbers), topic, spread)


def most_keys(document: Document) -> int:
    """Return how many different keys there are."""
    things = len(document.topic.things)
    known = {
        "thing": things,
        "name": len(NAMES),
        "number": 1000,
        "coloured thing": things * len(COLOURS),
    }
    return known.get(document.keys, 4 * 1000)


def make_keys(pick: Pick, document: Document, count: int) -> list[str]:
    """Return ``count`` different keys."""
    topic = document.topic
    if document.keys == "number":
        return [str(number) for number in pick.some(range(1000), count)]
    if document.keys == "thing":
        return pick.some(topic.things, count)
    if document.keys == "name":
        return pick.some(NAMES, count)
    if document.keys == "coloured thing":
        pairs = range(len(topic.things) * len(COLOURS))
        return [
            f"{COLOURS[p % len(COLOURS)]} {topic.things[p // len(COLOURS)]}"
            for p in pick.some(pairs, count)
        ]
    found: dict[str, None] = {}
    # Few things with many numbers each are the hard case: both parts of a key have to match.
    things = pick.some(topic.things, pick.within(2 + count // 400, len(topic.things)))
    while len(found) < count:
        found[f"{pick.of(things)} {pick.below(1000)}"] = None
    return list(found)


def make_value(pick: Pick, document: Document) -> str:
    """Return a value."""
    if document.values == "three":
        return str(pick.within(100, 999))
    if document.values == "two":
        return str(pick.within(0, 99))
    if document.values == "long":
        return str(pick.within(1000, 999_999))
    return pick.of(COLOURS if document.values == "colour" else NAMES)
