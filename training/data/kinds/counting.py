"""Counting the items of a list, all of them or those that are the same."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at

NAME = "counting"


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for one count."""
    most = 8 if want.effort == "off" else 14

    def draw() -> tuple[str, tuple[list[str], str]]:
        few = pick.some(want.topic.things, pick.within(2, 4))
        items = [pick.of(few) for _ in range(pick.within(2, most))]
        wanted = pick.of(few if pick.chance(0.8) else want.topic.things)
        wanted = wanted if pick.chance(0.7) else ""
        return f"counting {wanted} in {' '.join(items)}", (items, wanted)

    question, (items, wanted) = admitted(want, draw)
    listed = ", ".join(items)
    if wanted:
        user = pick.of((
            f"How often does {wanted} occur here? {listed}", f"Count the word {wanted}: {listed}",
            f"How many times is {wanted} in this list: {listed}?",
            f"count {wanted} in {listed}", f"Count the {wanted}: {listed}",
            f"How many {wanted} are here? {listed}", f"count the {wanted}: {' '.join(items)}",
        ))  # fmt: skip
    else:
        user = pick.of((
            f"How many words are these? {listed}", f"Count the items: {listed}",
            f"count: {listed}", f"How many items are in {listed}?",
            f"How many words are in this list? {' '.join(items)}",
        ))  # fmt: skip
    count, lines = 0, []
    for item in items:
        count += not wanted or item == wanted
        lines.append(f"{item} {count}")
    name = wanted or "item"
    low = f"I count {', '.join(str(number) for number in range(1, count + 1)) or 'none'}."
    high = f"I go through the list and count each {name}.\n" + "\n".join(lines)
    check = f"Check: {' '.join(items)}: {count} of {len(items)}."
    times = "time" if count == 1 else "times"
    answer = f"The word {wanted} occurs {count} {times}." if wanted else f"There are {count} items."
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer)
