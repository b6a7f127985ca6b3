"""Make ``training/tokenizer/tokenizer.json`` from generated conversations.

Run: ``python -m training.data.train_tokenizer``. The same seed gives the same file.

Groups of one, two and three digits are tokens of their own, with leading zeros too: a number below
1,000 is then found and copied in one step. Merges of words come first, learnt from text without
digits; then a merge for every two digits, and two for every three, since which neighbours join
first depends on the digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from training.data.conversation import EFFORTS
from training.data.kinds import KINDS
from training.data.pick import Pick, Split, Want
from training.data.topics import COLOURS, NAMES, TOPICS
from training.data.vocabulary import IDS, SIZE, TOKENIZER_FILE, splitter

_CONVERSATIONS = 24_000
_ROOM = 300
_LISTED = 1000
_DIGITS = "0123456789"
_TWO = tuple("".join(pair) for pair in product(_DIGITS, repeat=2))
_THREE = tuple("".join(group) for group in product(_DIGITS, repeat=3))


def corpus(count: int) -> Iterator[str]:
    """Yield texts of every kind in turn, without digits."""
    pick = Pick("tokenizer")
    for place in range(count):
        want = Want(
            Split.TRAIN,
            pick.of(EFFORTS),
            pick.of(TOPICS),
            _ROOM,
            lambda text: len(text) // 3,
        )
        made = KINDS[place % len(KINDS)].make(pick, want)
        texts = [turn.content for turn in made.turns]
        texts += [turn.thought for turn in made.turns if turn.thought]
        texts += [call.name for turn in made.turns for call in turn.calls]
        texts += [tool.written for tool in made.tools]
        for text in texts:
            yield re.sub(r"\d", "", text)
    yield from word_lists()


def word_lists() -> Iterator[str]:
    """Yield every word of the topics often enough to become one token.

    Things occur at the start of a line as well as inside one, so both spellings are listed.
    """
    for topic in TOPICS:
        inner = (*topic.things, *topic.places, *topic.people, *topic.actions, *topic.numbers)
        lines = [*topic.things, *(f" {word}" for word in inner)]
        yield "\n".join(lines * _LISTED)
    yield "\n".join(f" {word}" for word in (*NAMES, *COLOURS) * _LISTED)


def train() -> dict[str, Any]:
    """Return the content of the tokenizer file."""
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = splitter()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE - len(IDS) - len(_TWO) - len(_THREE),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(corpus(_CONVERSATIONS), trainer)
    stored: dict[str, Any] = json.loads(engine.to_str())
    model = stored["model"]
    names = sorted(model["vocab"], key=model["vocab"].__getitem__)
    # Groups get their ids in the order of their values.
    names += [*_TWO, *_THREE]
    model["vocab"] = {text: number for number, text in enumerate(names)}
    merges = [list(pair) for pair in model["merges"]]
    merges += [[two[0], two[1]] for two in _TWO]
    merges += [[three[:2], three[2]] for three in _THREE]
    merges += [[three[0], three[1:]] for three in _THREE]
    model["merges"] = merges
    stored["added_tokens"] = [
        {"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for text, number in IDS.items()
    ]  # fmt: skip
    return stored


def main() -> None:
    """Write the file and say how full the vocabulary is."""
    stored = train()
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    TOKENIZER_FILE.write_text(text + "\n", encoding="utf-8")
    model = stored["model"]
    print(f"{len(model['vocab'])} ordinary entries, {len(model['merges'])} merges")
    print(f"{TOKENIZER_FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
