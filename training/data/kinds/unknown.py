"""Questions it cannot answer: it says so and what it can do instead."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at
from training.data.topics import NAMES

NAME = "unknown"
_PLACES = tuple(
    "France Japan Brazil Egypt Canada India Peru Norway Kenya Spain Italy Cuba Chile Iran".split()
)
_ASKED = (
    "What is the capital of {place}?", "Who is the president of {place}?", "Who was {name}?",
    "What is the weather in {place} today?", "What happened in {place} yesterday?",
    "Tell me the news about {thing}.", "Why was the {thing} invented?", "Who invented the {thing}?",
    "Write a novel about a {thing}.", "Explain the history of the {thing}.", "How old is {name}?",
    "Where does {name} live?", "What does {name} think about the {thing}?",
    "Which {thing} should I buy?", "Is the {thing} healthy?", "How do I repair a {thing}?",
    "What will the {thing} cost next year?", "Translate {thing} into French.",
    "What is the meaning of life, {name} asks?", "Give me advice about my {thing}.",
    "How many people live in {place}?", "Describe the {thing} in detail.",
    "Tell me a joke about a {thing}.", "What did {name} do with the {thing} in {place}?",
)  # fmt: skip
_ANSWER = (
    "I do not know. I am only a small demonstration model. Ask me to look up, count, sort, copy or"
    " calculate something."
)


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for something out of scope."""

    def draw() -> tuple[str, str]:
        user = pick.of(_ASKED).format(
            place=pick.of(_PLACES), name=pick.of(NAMES), thing=pick.of(want.topic.things)
        )
        return f"unknown {user}", user

    question, user = admitted(want, draw)
    low = "I do not know this."
    high = f"The user asks: {user}\nThis is not in the conversation and I have not learnt it."
    check = "I could only guess. A guess would be wrong, so I say that I do not know."
    return Exchange(question, user, thought_at(want.effort, low, high, check), _ANSWER)
