"""Putting numbers or words in order."""

from __future__ import annotations

from itertools import pairwise

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "sorting"


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one ordered sequence."""

    def draw() -> tuple[str, tuple[list[str], bool]]:
        items, is_falling = _items(pick, want)
        return f"sorting {is_falling} {' '.join(items)}", (items, is_falling)

    question, (items, is_falling) = admitted(want, draw)
    are_numbers = items[0].isdigit()
    ordered = sorted(items, key=int if are_numbers else None, reverse=is_falling)
    given, answer = ", ".join(items), ", ".join(ordered)
    user = _wording(pick, given, are_numbers=are_numbers, is_falling=is_falling)
    end = ("largest" if is_falling else "smallest") if are_numbers else "first"
    low = f"The {end} is {ordered[0]}, then {ordered[1]}."
    high = _steps(items, ordered, end)
    pairs = ", ".join(
        f"{a} {('>' if is_falling else '<') if are_numbers else 'before'} {b}"
        for a, b in pairwise(ordered)
    )
    return Exchange(question, user, thought_at(want.effort, low, high, f"Check: {pairs}."), answer)


def _items(pick: Pick, want: Want) -> tuple[list[str], bool]:
    count = pick.within(3, 5 if want.effort == "off" else 8)
    if pick.chance(0.4):
        return pick.some(want.topic.things, count), False
    top = 100 if pick.chance(0.5) else 1000
    return [str(number) for number in pick.some(range(top), count)], pick.chance(0.3)


def _wording(pick: Pick, given: str, *, are_numbers: bool, is_falling: bool) -> str:
    spaced = given.replace(",", "")
    if not are_numbers:
        return pick.of((
            f"Sort these words by the alphabet: {given}", f"Put in alphabetical order: {given}",
            f"Sort {given}", f"sort {spaced}", f"Sort alphabetically: {given}", f"order: {given}",
        ))  # fmt: skip
    if is_falling:
        return pick.of((
            f"Sort from large to small: {given}", f"Sort these numbers, largest first: {given}",
            f"sort {spaced} from large to small", f"Sort {given}, largest first",
        ))  # fmt: skip
    return pick.of((
        f"Sort these numbers: {given}", f"Sort from small to large: {given}",
        f"Put these numbers in order: {given}", f"Sort {given}", f"sort {spaced}",
        f"order: {given}", f"Please sort {given}.", f"Sort these: {spaced}",
    ))  # fmt: skip


def _steps(items: list[str], ordered: list[str], end: str) -> str:
    left, lines = list(items), []
    for item in ordered[:-1]:
        lines.append(f"Of {' '.join(left)} the {end} is {item}.")
        left.remove(item)
    return "\n".join((*lines, f"{ordered[-1]} is left."))
