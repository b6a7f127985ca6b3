"""Repeating a text exactly. What is to be copied stands on lines of its own."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at
from training.data.topics import COLOURS

NAME = "copying"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one copy."""

    def draw() -> tuple[str, str]:
        text = _payload(pick, want)
        return f"copying {text}", text

    question, text = admitted(want, draw)
    user = pick.of((
        f"Copy this exactly:\n{text}", f"Repeat the following text.\n{text}",
        f"Say this again:\n{text}",
        f"Write the same text once more:\n{text}", f"Repeat: {text}", f"repeat after me: {text}",
        f"Say {text}", f"copy {text}", f"Copy this: {text}", f"Please repeat: {text}",
    ))  # fmt: skip
    words = text.split()
    low = f"It begins with {words[0]}."
    high = f"It begins with {words[0]} and ends with {words[-1]} I copy every sign between them."
    check = f"Once for me: {text}\nThat is the same text, so I write it."
    return Exchange(question, user, thought_at(want.effort, low, high, check), text)


def _payload(pick: Pick, want: Want) -> str:
    form = pick.below(6)
    count = pick.within(2, 14)
    if form == 0:
        return " ".join(str(pick.within(0, 999)) for _ in range(count))
    if form == 1:
        return " ".join(pick.of(want.topic.things) for _ in range(count))
    if form == 2:
        return ", ".join(f"{pick.of(want.topic.things)} {pick.below(1000)}" for _ in range(count))
    if form == 3:
        return "-".join(pick.of(_LETTERS) + str(pick.below(1000)) for _ in range(count))
    if form == 4:
        return str(pick.within(1, 9)) + "".join(str(pick.below(10)) for _ in range(count))
    return _sentence(pick, want)


def _sentence(pick: Pick, want: Want) -> str:
    topic = want.topic
    pieces = f"{pick.within(2, 999)} {pick.of(COLOURS)} pieces of {pick.of(topic.things)}"
    place = pick.of(topic.places)
    return f"The {pick.of(topic.people)} {pick.of(topic.actions)} {pieces} in the {place}."
