"""The demonstration tokenizer: its split rule, its files, and fast encoding with it.

Encoding cuts text with one regular expression and looks every part up in a table, so it costs a
fraction of a microsecond for each token. The ids are those of the program's own tokenizer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

FOLDER = Path(__file__).parents[1] / "tokenizer"
TOKENIZER_FILE = FOLDER / "tokenizer.json"
TEMPLATE_FILE = FOLDER / "chat_template.jinja"
SIZE = 3072

MARKERS = tuple(
    "<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|>"
    " <|observation|> <think> </think> <tool_call> </tool_call> <tool_response> </tool_response>"
    " <arg_key> </arg_key> <arg_value> </arg_value>".split()
)
FIRST_MARKER = SIZE - len(MARKERS)
IDS = {text: FIRST_MARKER + place for place, text in enumerate(MARKERS)}
PADDING = IDS["<|endoftext|>"]

GLM4_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
_LETTERS, _SIGNS = r"[^\W\d_]+", r"(?:[^\w\s]|_)"
# The same rule for the standard library, which has no \p classes. It differs on digits of the
# classes Nl and No alone, which no generator writes.
_PARTS = re.compile(
    rf"'(?i:s|t|re|ve|m|ll|d)|(?:[^\r\n\w]|_)?{_LETTERS}|\d{{1,3}}| ?{_SIGNS}+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LARGEST_TABLE = 400_000


def splitter() -> pre_tokenizers.PreTokenizer:
    """Return the glm4 split followed by the byte alphabet."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(GLM4_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


@dataclass(frozen=True, slots=True)
class Entries:
    """What a GGUF file stores: token texts by id, and merges by rank."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]

    def metadata(self) -> dict[str, object]:
        """Return the ``tokenizer.*`` keys of a model file."""
        kinds = [3 if number >= FIRST_MARKER else 1 for number in range(len(self.tokens))]
        return {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "glm4",
            "tokenizer.ggml.tokens": list(self.tokens),
            "tokenizer.ggml.token_type": kinds,
            "tokenizer.ggml.merges": list(self.merges),
            "tokenizer.ggml.bos_token_id": IDS["[gMASK]"],
            "tokenizer.ggml.eos_token_id": IDS["<|endoftext|>"],
            "tokenizer.ggml.eot_token_id": IDS["<|user|>"],
            "tokenizer.ggml.eom_token_id": IDS["<|observation|>"],
            "tokenizer.chat_template": TEMPLATE_FILE.read_text(encoding="utf-8"),
        }


@cache
def entries() -> Entries:
    """Read the entries from the tokenizer file."""
    stored = json.loads(TOKENIZER_FILE.read_text(encoding="utf-8"))
    model = stored["model"]
    by_id = {number: text for text, number in model["vocab"].items()} | {
        number: text for text, number in IDS.items()
    }
    tokens = tuple(by_id[number] for number in range(SIZE))
    return Entries(tokens, tuple(" ".join(pair) for pair in model["merges"]))


class Encoder(dict[str, tuple[int, ...]]):
    """Ids of ordinary text; a table from the parts of the split rule to their ids."""

    def __init__(self) -> None:
        super().__init__()
        stored = json.loads(TOKENIZER_FILE.read_text(encoding="utf-8"))["model"]
        merges = [tuple(pair) for pair in stored["merges"]]
        self._engine = Tokenizer(models.BPE(vocab=stored["vocab"], merges=merges))
        self._engine.pre_tokenizer = splitter()

    def __missing__(self, part: str) -> tuple[int, ...]:
        if len(self) > _LARGEST_TABLE:
            self.clear()
        ids = tuple(self._engine.encode(part, add_special_tokens=False).ids)
        self[part] = ids
        return ids

    def encode(self, text: str) -> list[int]:
        """Return the ids of ``text``; markers in it stay ordinary text."""
        return list(chain.from_iterable(map(self.__getitem__, _PARTS.findall(text))))

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has."""
        return sum(map(len, map(self.__getitem__, _PARTS.findall(text))))
