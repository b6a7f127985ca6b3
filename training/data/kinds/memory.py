"""Facts told in earlier turns, changed now and then, and asked for later."""

from __future__ import annotations

from training.data.conversation import Conversation, Turn
from training.data.kinds import about, arithmetic, counting
from training.data.kinds.documents import filler
from training.data.kinds.together import opening
from training.data.pick import Exchange, Pick, Want, admitted, thought_at
from training.data.topics import COLOURS, NAMES

NAME = "memory"
_BETWEEN = (about.ask, arithmetic.ask, counting.ask)
_TURN_TOKENS = 90


def make(pick: Pick, want: Want) -> Conversation:
    """Tell facts, talk about other things, and ask for the facts."""
    turns = opening(pick, want)
    facts: dict[str, str] = {}
    questions: list[str] = []
    rounds = min(60, max(2, want.room // _TURN_TOKENS))
    for place in range(rounds):
        form = 0.0 if place == 0 else 0.5 if place == rounds - 1 else pick.random()
        if form < 0.35:
            turns += _tell(pick, want, facts)
        elif form < 0.65:
            exchange = _recall(pick, want, facts)
            turns += _turns(exchange)
            questions.append(exchange.question)
        else:
            exchange = pick.of(_BETWEEN)(pick, want)
            turns += _turns(exchange)
            questions.append(exchange.question)
    if want.effort != "off" and pick.chance(0.05):
        turns = _without_some_thoughts(pick, turns)
    return Conversation(NAME, want.topic.name, want.effort, tuple(turns), tuple(questions))


def _turns(exchange: Exchange) -> list[Turn]:
    return [Turn("user", exchange.user), Turn("assistant", exchange.answer, exchange.thought)]


def _tell(pick: Pick, want: Want, facts: dict[str, str]) -> list[Turn]:
    """Tell a new fact, or a new value of one that is known."""
    if facts and pick.chance(0.25):
        key = pick.of(tuple(facts))
        verb = "is now"
    else:
        key = _key(pick, want)
        verb = "is now" if key in facts else "is"
    _, value = admitted(want, lambda: _fact(pick, key))
    facts[key] = value
    about_it = f"The {key} {verb} {value}."
    user = pick.of(
        (
            about_it,
            f"Remember: the {key} {verb} {value}.",
            f"Please note that the {key} {verb} {value}.",
            f"the {key} {verb} {value}",
            f"Remember that the {key} {verb} {value}.",
            f"Note: the {key} {verb} {value}.",
        )
    )
    if pick.chance(0.3):
        user = f"{filler(pick, want.topic)} {user}"
    low = f"A fact: {key}, {value}."
    high = f"The user tells me something to remember. The {key} {verb} {value}."
    check = f"I keep {key} = {value} for later questions."
    thought = thought_at(want.effort, low, high, check)
    return [
        Turn("user", user),
        Turn("assistant", f"Noted: the {key} {verb} {value}.", thought),
    ]  # fmt: skip


def _key(pick: Pick, want: Want) -> str:
    topic = want.topic
    if pick.chance(0.3):
        return f"favourite {pick.of(('colour', 'number'))} of {pick.of(NAMES)}"
    return f"{pick.of(topic.numbers)} of the {pick.of(topic.things)}"


def _fact(pick: Pick, key: str) -> tuple[str, str]:
    value = str(pick.within(1, 999))
    if " colour " in key:
        value = f"{pick.of(COLOURS)} {value}"
    return f"memory {key} {value}", value


def _recall(pick: Pick, want: Want, facts: dict[str, str]) -> Exchange:
    key = pick.of(tuple(facts))
    value = facts[key]
    user = pick.of((f"What is the {key}?", f"Do you remember the {key}?", f"Tell me the {key}.",
                    f"what is the {key}", f"And the {key}?", f"What was the {key}?"))  # fmt: skip
    low = f"The {key}: {value}."
    high = f"The user asks for the {key}. It was told to me before: the {key} is {value}."
    check = f"I look for a later change of the {key}. The last value is {value}."
    thought = thought_at(want.effort, low, high, check)
    return Exchange(f"memory {key} {value}", user, thought, f"The {key} is {value}.")


def _without_some_thoughts(pick: Pick, turns: list[Turn]) -> list[Turn]:
    """Empty some blocks, as when the level was off for a while."""
    emptied = [
        Turn(turn.role, turn.content) if turn.thought and pick.chance(0.4) else turn
        for turn in turns[:-1]
    ]
    return [*emptied, turns[-1]]
