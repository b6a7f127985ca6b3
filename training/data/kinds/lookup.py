"""Finding the value of a key in a text of a given length, at any depth among distractors."""

from __future__ import annotations

from training.data.conversation import Conversation
from training.data.kinds.documents import (
    Document,
    choose_document,
    make_keys,
    make_value,
    most_keys,
)
from training.data.kinds.together import opening, together
from training.data.pick import Exchange, Pick, Split, Want, admitted, thought_at

NAME = "lookup"
_SAMPLE = 12
_AROUND = 48
_MOST_QUESTIONS = 40
_QUESTION_SHARE = 0.3
_NAMES_OF_FORMS = {"list": "list", "log": "log", "table": "table", "json": "JSON", "prose": "text",
                   "story": "story"}  # fmt: skip


def make(pick: Pick, want: Want) -> Conversation:
    """Write a text that fills the room, and ask about some of its keys."""
    # Few values times few keys may leave none for the smaller split.
    has_few = want.split is Split.TRAIN
    document = choose_document(pick, want.topic, want.room, may_have_few_values=has_few)
    asked, count = _sizes(pick, want, document)
    keys = make_keys(pick, document, count)
    entries = [(key, make_value(pick, document)) for key in keys]
    exchanges: list[Exchange] = []
    for place in pick.some(range(count), asked):
        exchange, value = _question(pick, want, document, keys[place], is_first=not exchanges)
        entries[place] = (keys[place], value)
        exchanges.append(exchange)
    text = document.text(pick, entries)
    exchanges[0] = _with_text(pick, document, exchanges[0], text)
    return together(NAME, want, opening(pick, want), exchanges)


def _sizes(pick: Pick, want: Want, document: Document) -> tuple[int, int]:
    """Return how many questions to ask and how many entries to write."""
    keys = make_keys(pick, document, _SAMPLE)
    sample = document.text(pick, [(key, make_value(pick, document)) for key in keys])
    each = want.measure(sample) / _SAMPLE
    exchange, _ = _question(pick, want, document, keys[0], is_first=False)
    cost = 6 + want.measure(exchange.user + exchange.answer + (exchange.thought or ""))
    most = min(_MOST_QUESTIONS, int(want.room * _QUESTION_SHARE / cost))
    asked = pick.within(1, most) if most > 1 and want.split is Split.TRAIN else 1
    room = want.room - _AROUND - int(asked * cost * 1.1)
    # A margin of a tenth and a half: entries differ in length.
    count = max(4, int(room / (each * 1.06)))
    count = min(count, most_keys(document))
    return min(asked, count), count


def _question(
    pick: Pick, want: Want, document: Document, key: str, *, is_first: bool
) -> tuple[Exchange, str]:
    question, value = admitted(want, lambda: _fact(pick, document, key))
    name = document.attribute
    user = f"What is the {name} of {key}?"
    if not is_first and pick.chance(0.4):
        user = f"And the {name} of {key}?"
    entry = document.entry(key, value)
    low = f"I look for {key}: {value}."
    high = (
        f"I look for {key} in the {_NAMES_OF_FORMS[document.form]}. The entry reads:\n{entry}\n"
        f"So the {name} is {value}."
    )
    check = f"I look once more: {key} has {value}. It is the same."
    answer = f"The {name} of {key} is {value}."
    return Exchange(question, user, thought_at(want.effort, low, high, check), answer), value


def _fact(pick: Pick, document: Document, key: str) -> tuple[str, str]:
    value = make_value(pick, document)
    return f"lookup {key} {value}", value


def _with_text(pick: Pick, document: Document, exchange: Exchange, text: str) -> Exchange:
    named = _NAMES_OF_FORMS[document.form]
    if pick.chance(0.15):
        user = f"{exchange.user} Look in this {named}.\n\n{text}"
    else:
        user = f"Here is a {named} with every {document.attribute}.\n\n{text}\n\n{exchange.user}"
    return Exchange(exchange.question, user, exchange.thought, exchange.answer)
