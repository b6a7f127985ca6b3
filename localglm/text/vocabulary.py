"""The vocabulary of a model file, read from its metadata and checked.

Knows the ``tokenizer.ggml.*`` keys and nothing about how text is encoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from localglm.errors import ModelFileError
from localglm.text.byte_alphabet import byte_characters
from localglm.text.markers import END_OF_TEXT, GLM_MARKERS, OBSERVATION, USER

_PREFIX = "tokenizer.ggml."
_ACCEPTED_SPLITS = ("glm4", "glm5", "glm-4", "chatglm-bpe")
_CONTROL, _USER_DEFINED = 3, 4
_TURN_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens by id, merges by rank as written, markers by text, and the ids that end a turn."""

    tokens: tuple[str, ...]
    merges: Sequence[str]
    markers: Mapping[str, int]
    end_of_turn: frozenset[int]
    notes: tuple[str, ...]


def read_vocabulary(metadata: Mapping[str, object]) -> Vocabulary:
    """Read and check the vocabulary.

    Raises: ModelFileError when there is none, or one this program cannot use.
    """
    _check_model(metadata)
    notes = _check_split(metadata)
    tokens = tuple(_strings(metadata, "tokens"))
    if not tokens:
        raise ModelFileError(
            "the model file has an empty vocabulary",
            why=f"{_PREFIX}tokens holds no entry",
            try_="use a complete model file",
        )
    first = _first_ids(tokens)
    if len(first) != len(tokens):
        notes.append(
            f"{len(tokens) - len(first)} vocabulary entries repeat an earlier text; "
            "text is encoded with the first of them"
        )
    markers = _markers(metadata, tokens, first)
    _check_alphabet(first)
    merges = _strings(metadata, "merges")
    return Vocabulary(tokens, merges, markers, _end_of_turn(metadata, tokens, first), tuple(notes))


def marker_texts(metadata: Mapping[str, object]) -> frozenset[str]:
    """Return the marker texts of the file, or the family's own when it has no vocabulary."""
    if _PREFIX + "tokens" not in metadata:
        return frozenset(GLM_MARKERS)
    tokens = _strings(metadata, "tokens")
    return frozenset(_markers(metadata, tokens, _first_ids(tokens))) | frozenset(GLM_MARKERS)


def usable_merges(vocabulary: Vocabulary) -> tuple[list[tuple[str, str]], int]:
    """Return the merges in two parts, without those that touch a marker, and how many those are.

    Raises: ModelFileError for a merge of tokens the vocabulary lacks.
    """
    known, markers = frozenset(vocabulary.tokens), vocabulary.markers
    merges: list[tuple[str, str]] = []
    dropped = 0
    for line in vocabulary.merges:
        left, space, right = line.partition(" ")
        joined = left + right
        if not space or not known.issuperset((left, right, joined)):
            raise ModelFileError(
                f"the merge {line[:60]!r} does not fit the vocabulary",
                why="a merge joins two tokens of the vocabulary into a third one",
                try_="use a complete model file",
            )
        if joined in markers or left in markers or right in markers:
            dropped += 1
        else:
            merges.append((left, right))
    return merges, dropped


def _first_ids(tokens: Sequence[str]) -> dict[str, int]:
    ids = {text: place for place, text in enumerate(tokens)}
    if len(ids) != len(tokens):
        ids = {}
        for place, text in enumerate(tokens):
            ids.setdefault(text, place)
    return ids


def _check_model(metadata: Mapping[str, object]) -> None:
    model = metadata.get(_PREFIX + "model")
    if isinstance(model, str) and model == "gpt2":
        return
    if model is None or (isinstance(model, str) and model in {"none", "no_vocab"}):
        raise ModelFileError(
            "this model file has no vocabulary, so text cannot be turned into tokens",
            why=f"{_PREFIX}model is {'missing' if model is None else repr(model)}",
            try_="feed token ids instead of text, or use a file with a vocabulary",
        )
    raise ModelFileError(
        f"the vocabulary kind {model!r} is not one this program reads",
        why=f"{_PREFIX}model must be 'gpt2' (byte-level merges)",
        try_="use a GLM-5.3-Flash file made by a current converter",
    )


def _check_split(metadata: Mapping[str, object]) -> list[str]:
    split = metadata.get(_PREFIX + "pre")
    if isinstance(split, str) and split in _ACCEPTED_SPLITS:
        return []
    if split is None or (isinstance(split, str) and split in {"", "default"}):
        found = "no text-splitting rule" if not split else f"the splitting rule {split!r}"
        return [f"the file names {found} ({_PREFIX}pre); glm4 is used, as this model needs"]
    raise ModelFileError(
        f"the text-splitting rule {split!r} ({_PREFIX}pre) is not known",
        why=f"accepted are {', '.join(_ACCEPTED_SPLITS)}, and a missing or 'default' entry",
        try_="use a GLM-5.3-Flash file made by a current converter",
    )


def _strings(metadata: Mapping[str, object], key: str) -> Sequence[str]:
    value = metadata.get(_PREFIX + key)
    if value is None and key == "merges":
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ModelFileError(
            f"the vocabulary entry {_PREFIX}{key} cannot be used",
            why="it is missing" if value is None else "it is not a list of texts",
            try_="use a complete model file",
        )
    strings = list(value)
    if not all(isinstance(text, str) for text in strings):
        raise ModelFileError(
            f"the vocabulary entry {_PREFIX}{key} cannot be used",
            why="one of its entries is not a text",
            try_="use a complete model file",
        )
    return cast("list[str]", strings)


def _markers(
    metadata: Mapping[str, object], tokens: Sequence[str], first: Mapping[str, int]
) -> dict[str, int]:
    markers = {text: first[text] for text in GLM_MARKERS if text in first}
    listed = _kinds(metadata)
    if listed is None:
        return markers
    if len(listed) != len(tokens):
        raise ModelFileError(
            "the vocabulary is not consistent",
            why=f"{len(tokens)} tokens, but {len(listed)} entries in {_PREFIX}token_type",
            try_="use a complete model file",
        )
    for place, kind in enumerate(listed):
        # A single character cannot be told from typed text, so it is never a marker.
        if kind in {_CONTROL, _USER_DEFINED} and len(tokens[place]) > 1:
            markers.setdefault(tokens[place], first[tokens[place]])
    return markers


def _kinds(metadata: Mapping[str, object]) -> list[object] | None:
    kinds = metadata.get(_PREFIX + "token_type")
    if kinds is None:
        return None
    # An array gives plain numbers through tolist, many times faster than one by one.
    listed = kinds.tolist() if hasattr(kinds, "tolist") else kinds
    if isinstance(listed, list | tuple) and all(isinstance(kind, int) for kind in listed):
        return list(listed)
    raise ModelFileError(
        f"the vocabulary entry {_PREFIX}token_type cannot be used",
        why="it is not a list of whole numbers",
        try_="use a complete model file",
    )


def _check_alphabet(first: Mapping[str, int]) -> None:
    missing = [byte for byte, text in byte_characters().items() if text not in first]
    if missing:
        raise ModelFileError(
            f"the vocabulary has no token for {len(missing)} of the 256 byte values",
            why=f"the first missing one is byte {min(missing)}, so some text would be lost",
            try_="use a complete model file",
        )


def _end_of_turn(
    metadata: Mapping[str, object], tokens: Sequence[str], first: Mapping[str, int]
) -> frozenset[int]:
    ids = {first[text] for text in (END_OF_TEXT, USER, OBSERVATION) if text in first}
    for key in _TURN_KEYS:
        value = metadata.get(_PREFIX + key)
        if value is None:
            continue
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            found = repr(value)
        elif 0 <= (number := value.__index__()) < len(tokens):
            ids.add(number)
            continue
        else:
            found = str(number)
        raise ModelFileError(
            f"the end-of-turn entry {_PREFIX}{key} is {found}",
            why=f"it must be an id from 0 to {len(tokens) - 1}",
            try_="use a complete model file",
        )
    return frozenset(ids)
