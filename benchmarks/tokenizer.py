"""Speed of the tokenizer: building it, encoding and decoding a mixed megabyte.

Run: python benchmarks/tokenizer.py [MODEL.gguf]

Without a file a vocabulary of the published size is made up: 154,880 entries, 318,000 merges, words
of random syllables. Its merges behave like real ones; its tokens per byte do not tell anything.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from localglm.gguf import open_model
from localglm.text.byte_alphabet import byte_characters
from localglm.text.markers import GLM_MARKERS
from localglm.text.tokenizer import Tokenizer

_ENTRIES, _MERGES, _RUNS = 154_880, 318_000, 5
_BAR = 300_000
_SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in "aeiou"] + ["th", "er", "ing", "on", "st"]
_ENDS = [".\n", " = 12345;\n", " 东京你好。\n", " 🙂🙃\t\r\n", " <|user|> [1]\n"]


def word(pick: random.Random) -> str:
    """Return a made-up word of one to four syllables."""
    return "".join(pick.choice(_SYLLABLES) for _ in range(pick.randint(1, 4)))


def made_up_metadata() -> dict[str, object]:
    """Return the metadata of a vocabulary of the published size."""
    pick = random.Random(1)
    tokens = dict.fromkeys(byte_characters().values())
    merges: dict[str, None] = {}
    while len(tokens) < _ENTRIES - len(GLM_MARKERS):
        grown = pick.choice(["", "Ġ"]) + word(pick)
        for size in range(2, len(grown) + 1):
            if len(tokens) < _ENTRIES - len(GLM_MARKERS):
                tokens[grown[:size]] = None
                merges[f"{grown[: size - 1]} {grown[size - 1]}"] = None
    for token in list(tokens):
        for cut in range(1, len(token)):
            if len(merges) < _MERGES and token[:cut] in tokens and token[cut:] in tokens:
                merges[f"{token[:cut]} {token[cut:]}"] = None
    listed = [*tokens, *GLM_MARKERS]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "glm4",
        "tokenizer.ggml.tokens": listed,
        "tokenizer.ggml.token_type": [1] * len(tokens) + [3] * len(GLM_MARKERS),
        "tokenizer.ggml.merges": list(merges),
    }


def mixed_text() -> str:
    """Return about a megabyte of words, numbers, Han, emoji and markers typed as text."""
    pick = random.Random(2)
    lines: list[str] = []
    while 80 * len(lines) < 1_000_000:
        lines.append(" ".join(word(pick) for _ in range(12)) + pick.choice(_ENDS))
    return "".join(lines)


def measure(metadata: Mapping[str, object]) -> float:
    """Print the figures and return the tokens encoded in a second (median of five runs)."""
    start = time.perf_counter()
    tokenizer = Tokenizer.from_metadata(metadata)
    build = time.perf_counter() - start
    text = mixed_text()
    marks = [time.perf_counter()]
    for _ in range(_RUNS):
        ids = tokenizer.encode(text)
        marks.append(time.perf_counter())
    encode = sorted(b - a for a, b in pairwise(marks))[_RUNS // 2]
    start = time.perf_counter()
    back = tokenizer.decode(ids)
    decode = time.perf_counter() - start
    if back != text:
        raise SystemExit("the text did not survive the round trip")
    print(f"vocabulary      {tokenizer.vocabulary_size:,} entries, built in {build:.2f} s")
    print(f"text            {len(text.encode()):,} bytes, {len(ids):,} tokens, round trip equal")
    print(f"encode          {len(ids) / encode:,.0f} tokens/s (bar {_BAR:,})")
    print(f"decode          {len(ids) / decode:,.0f} tokens/s")
    return len(ids) / encode


def main() -> None:
    """Measure the vocabulary of the file named, or a made-up one; exit 1 below the bar."""
    if len(sys.argv) > 1:
        with open_model(Path(sys.argv[1])) as file:
            rate = measure(file.metadata)
    else:
        rate = measure(made_up_metadata())
    raise SystemExit(rate < _BAR)


if __name__ == "__main__":
    main()
