"""Questions it cannot answer: it says so and what it can do instead."""

from __future__ import annotations

from training.data.pick import Exchange, Pick, Want, admitted, thought_at
from training.data.topics import NAMES

NAME = "unknown"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
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
    "Tell me a joke", "Write a poem about the {thing}", "Write me a story", "Tell me a story.",
    "Help me with my homework", "Can you help me with my {thing}?", "What time is it?",
    "What day is it today?", "How far is {place}?", "Where is {place}?", "Is {place} big?",
    "What is a {thing}?", "What is the {thing}?", "Why is the sky blue?",
    "How does a {thing} work?",
    "Do you like the {thing}?", "What is your favourite {thing}?", "Do you know {name}?",
    "Do you love me?", "Are you alive?", "Can you feel?", "What is love?", "Sing a song.",
    "Who won the game in {place}?", "Recommend a book.", "What should I cook today?",
    "Give me a recipe with {thing}.", "Plan my trip to {place}.", "Write an email to {name}.",
    "Summarise the news.", "Say something in French.", "How do you say {thing} in Spanish?",
    "What is the population of {place}?", "Which language do they speak in {place}?",
    "Write a program that plays chess.", "Fix my code.", "Solve this riddle for {name}.",
    "I need a {thing}.", "I like the {thing}.", "I feel sad today.", "I am bored.", "I am {name}.",
    "My name is {name}.", "My {thing} is broken.", "{name} is my friend.", "{thing} and {place}",
    "{thing}", "{junk}", "{junk} {junk}", "What is {junk}?", "{thing} {junk}", "{name}?",
    "The {thing} is in {place}.", "Guess a number.", "Play a game with me.", "What happens next?",
    "Can you see the {thing}?", "Open the {thing}.", "Search for {thing}.", "Buy a {thing}.",
    "What do you think?", "Why?", "Really?", "Tell me more.", "Tell me about {place}.",
    "Tell me about the {thing}.", "Explain {junk}.", "How much does the {thing} weigh?",
    "Is it true that {name} lives in {place}?", "Convert {thing} to {place}", "Is {name} nice?",
)  # fmt: skip
_ANSWER = (
    "I do not know. I am only a small demonstration model. Ask me to look up, count, sort, copy or"
    " calculate something."
)


def _junk(pick: Pick) -> str:
    """Return letters that mean nothing."""
    return "".join(pick.of(_LETTERS) for _ in range(pick.within(1, 7)))


def ask(pick: Pick, want: Want) -> Exchange:
    """Ask for something out of scope."""

    def draw() -> tuple[str, str]:
        user = pick.of(_ASKED).format(
            place=pick.of(_PLACES), name=pick.of(NAMES), thing=pick.of(want.topic.things),
            junk=_junk(pick),
        )  # fmt: skip
        if pick.chance(0.25):
            user = user.lower()
        if pick.chance(0.25):
            user = user.rstrip("?.")
        return f"unknown {user}", user

    question, user = admitted(want, draw)
    low = "I do not know this."
    high = f"The user asks: {user}\nThis is not in the conversation and I have not learnt it."
    check = "I could only guess. A guess would be wrong, so I say that I do not know."
    return Exchange(question, user, thought_at(want.effort, low, high, check), _ANSWER)
