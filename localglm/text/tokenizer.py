"""Text to ids and back, with the vocabulary of the model file.

Byte-level merges after the glm4 split. Markers become their ids only where the caller says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as _Engine

from localglm.errors import ModelFileError, RequestError
from localglm.text.byte_alphabet import byte_characters, token_bytes
from localglm.text.detokeniser import Detokeniser
from localglm.text.markers import MarkerSet
from localglm.text.prompt import Prompt
from localglm.text.vocabulary import Vocabulary, read_vocabulary, usable_merges

_GLM4_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


class Tokenizer:
    """Encodes and decodes with one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokens = vocabulary.tokens
        self._ids = dict(vocabulary.markers)
        self._marker_of = {number: text for text, number in self._ids.items()}
        self._engine, merge_notes = _build(vocabulary)
        self._values = {text: byte for byte, text in byte_characters().items()}
        self._bytes: dict[int, bytes] = {}
        self.markers = MarkerSet.of(self._ids)
        self.end_of_turn = vocabulary.end_of_turn
        self.notes: tuple[str, ...] = (*vocabulary.notes, *merge_notes)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object]) -> Tokenizer:
        """Build the tokenizer a model file describes.

        Raises: ModelFileError when the file has no vocabulary or one of another kind.
        """
        return cls(read_vocabulary(metadata))

    @property
    def vocabulary_size(self) -> int:
        """The number of entries, unused ones included."""
        return len(self._tokens)

    def marker_id(self, text: str) -> int | None:
        """Return the id of a marker, or None when the vocabulary lacks it."""
        return self._ids.get(text)

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the ids of ``text``; markers stay ordinary text unless ``special``.

        Raises: RequestError when the text holds half a surrogate pair.
        """
        if not special:
            return self._plain(text)
        return self.encode_prompt(Prompt(tuple(self.markers.split(text))))

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """Return the ids of a prompt; only the template's own markers become special.

        A marker the vocabulary lacks is encoded as the text it is, together with its neighbours.
        """
        ids: list[int] = []
        text = ""
        for piece in prompt.pieces:
            number = self._ids.get(piece.text) if piece.is_marker else None
            if number is None:
                text += piece.text
                continue
            ids += self._plain(text)
            ids.append(number)
            text = ""
        return ids + self._plain(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ``ids``, markers included; broken UTF-8 becomes U+FFFD."""
        return b"".join(map(self._bytes_of, ids)).decode("utf-8", "replace")

    def stream(self) -> Detokeniser:
        """Start a stream that turns ids into text as they come."""
        return Detokeniser(self._bytes_of, self._marker_of.get, self.markers)

    def _plain(self, text: str) -> list[int]:
        if not text:
            return []
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise RequestError(
                "the text is not valid Unicode",
                why=f"character {error.start + 1} is half of a surrogate pair",
                try_="save the text as UTF-8 and send it again",
            ) from None
        # The batch form keeps no character offsets, which is twice as fast.
        encoded = self._engine.encode_batch_fast([text], add_special_tokens=False)
        return list(encoded[0].ids)

    def _bytes_of(self, number: int) -> bytes:
        found = self._bytes.get(number)
        if found is None:
            if not 0 <= number < len(self._tokens):
                raise RequestError(
                    f"the token id {number} is outside the vocabulary",
                    why=f"ids go from 0 to {len(self._tokens) - 1}",
                    try_="check where the ids come from",
                )
            marker = self._marker_of.get(number)
            found = marker.encode() if marker else token_bytes(self._tokens[number], self._values)
            self._bytes[number] = found
        return found


def _build(vocabulary: Vocabulary) -> tuple[_Engine, list[str]]:
    # Markers are no part of the merge vocabulary, so no typed text can ever become one.
    entries = {
        text: number
        for number, text in reversed(list(enumerate(vocabulary.tokens)))
        if text not in vocabulary.markers
    }
    engine, dropped = _merge_engine(entries, vocabulary)
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_GLM4_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    if not dropped:
        return engine, []
    return engine, [f"{dropped} merges that would build a marker out of text are not used"]


def _merge_engine(entries: dict[str, int], vocabulary: Vocabulary) -> tuple[_Engine, int]:
    # Checking each merge here first would take as long as building everything, so the engine
    # checks, and only when it refuses is the merge at fault looked for.
    pairs: list[Any] = [tuple(line.split(" ", 1)) for line in vocabulary.merges]
    try:
        return _Engine(models.BPE(vocab=entries, merges=pairs)), 0
    except Exception:  # noqa: BLE001  the engine names no type
        merges, dropped = usable_merges(vocabulary)
    try:
        return _Engine(models.BPE(vocab=entries, merges=merges)), dropped
    except Exception as error:  # noqa: BLE001  the engine names no type
        raise ModelFileError(
            "the vocabulary of this file cannot be used",
            why=str(error)[:200],
            try_="use a complete model file",
        ) from None
