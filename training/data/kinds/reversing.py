"""Writing a sequence backwards: words, numbers, or single letters set apart."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "reversing"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one reversal."""

    def draw() -> tuple[str, list[str]]:
        items = _items(pick, want, pick.within(2, 6 if want.effort == "off" else 9))
        return f"reversing {' '.join(items)}", items

    question, items = admitted(want, draw)
    joint = pick.of((" ", " ", ", ", "-"))
    given = joint.join(items)
    user = pick.of((
        f"Reverse this:\n{given}", f"Write this backwards:\n{given}",
        f"Turn the order around.\n{given}", f"reverse {given}", f"Reverse: {given}",
        f"Reverse the order of {given}", f"Write {given} backwards",
    ))  # fmt: skip
    turned = items[::-1]
    answer = joint.join(turned)
    low = f"From the end: {' '.join(turned[:2])}."
    steps = "\n".join(f"{place}. {item}" for place, item in enumerate(turned, 1))
    high = f"The last is {items[-1]}. From the end to the start:\n{steps}"
    check = f"Check: {' '.join(turned)} read from its end is {' '.join(items)}."
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)


def _items(pick: Pick, want: Want, count: int) -> list[str]:
    form = pick.below(4)
    if form == 0:
        return [str(pick.below(1000)) for _ in range(count)]
    if form == 1:
        return [pick.of(_LETTERS) for _ in range(count)]
    if form == 2:
        return [str(pick.below(10)) for _ in range(count)]
    return pick.some(want.topic.things, count)
