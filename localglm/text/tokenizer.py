"""Text to ids and back, with the vocabulary of the model file.

Byte-level merges after the glm4 split. Markers become their ids only where the caller says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as _Engine

from localglm.errors import RequestError
from localglm.text.byte_alphabet import byte_characters, token_bytes
from localglm.text.detokeniser import Detokeniser
from localglm.text.markers import MarkerSet
from localglm.text.prompt import Prompt
from localglm.text.vocabulary import Vocabulary, read_vocabulary

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
        self._engine = _build(vocabulary)
        self._values = {text: byte for byte, text in byte_characters().items()}
        self._bytes: dict[int, bytes] = {}
        self.markers = MarkerSet.of(self._ids)
        self.end_of_turn = vocabulary.end_of_turn
        self.notes = vocabulary.notes

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
        stream = self.stream()
        texts = [stream.push(number) for number in ids]
        return "".join((*texts, stream.finish()))

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
            found = token_bytes(self._tokens[number], self._values)
            self._bytes[number] = found
        return found


def _build(vocabulary: Vocabulary) -> _Engine:
    # Markers are no part of the merge vocabulary, so no typed text can ever become one.
    entries = {
        text: number
        for number, text in reversed(list(enumerate(vocabulary.tokens)))
        if text not in vocabulary.markers
    }
    engine = _Engine(models.BPE(vocab=entries, merges=vocabulary.merges))
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_GLM4_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return engine
