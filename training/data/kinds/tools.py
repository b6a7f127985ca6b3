"""Calling a function in GLM's own form, and answering from its result."""

from __future__ import annotations

from training.data.conversation import Call, Conversation, Turn
from training.data.kinds import about, arithmetic
from training.data.kinds.together import opening
from training.data.kinds.toolsets import Offer, Use, offers
from training.data.pick import Pick, Split, Want, admitted, thought_at

NAME = "tools"
_ROUND_TOKENS = 160
_OTHER = (about.ask, arithmetic.ask)


def make(pick: Pick, want: Want) -> Conversation:
    """Offer some functions and ask for things that need one of them, or none."""
    offered = pick.some(offers(want.topic), pick.within(1, 4))
    turns = opening(pick, want)
    questions: list[str] = []
    most = min(6, max(1, want.room // _ROUND_TOKENS - 2))
    for _ in range(1 if want.split is Split.HELD_OUT else pick.within(1, most)):
        if want.split is Split.TRAIN and pick.chance(0.15):
            exchange = pick.of(_OTHER)(pick, want)
            questions.append(exchange.question)
            turns.append(Turn("user", exchange.user))
            turns.append(Turn("assistant", exchange.answer, exchange.thought))
        else:
            question, used = _use(pick, want, pick.of(offered))
            questions.append(question)
            turns += used
    tools = tuple(offer.tool for offer in offered)
    return Conversation(NAME, want.topic.name, want.effort, tuple(turns), tuple(questions), tools)


def _use(pick: Pick, want: Want, offer: Offer) -> tuple[str, list[Turn]]:
    def draw() -> tuple[str, Use]:
        use = offer.draw(pick, want)
        return f"tools {offer.name} {use.arguments}", use

    question, use = admitted(want, draw)
    call = Call(offer.name, use.arguments)
    given = ", ".join(f"{key} = {value}" for key, value in use.arguments)
    first = thought_at(
        want.effort,
        f"I call {offer.name}.",
        f"The user wants something that {offer.name} can do. Arguments: {given}.",
        f"The function needs {', '.join(key for key, _ in use.arguments)}, and all are known.",
    )
    second = thought_at(
        want.effort,
        "The result is here.",
        f"The function {offer.name} returned: {use.result}",
        f"So the answer is: {use.answer}",
    )
    return question, [
        Turn("user", use.user),
        Turn("assistant", "", first, (call,)),
        Turn("tool", use.result),
        Turn("assistant", use.answer, second),
    ]
