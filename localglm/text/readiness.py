"""Whether the text side of a model file works, found out before any weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from localglm.errors import LocalGlmError
from localglm.text.template import ChatTemplate
from localglm.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class TextReadiness:
    """What stands in the way of answering with a file, and what is worth knowing."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]


def check_text(metadata: Mapping[str, object]) -> TextReadiness:
    """Build the tokenizer and render a trial prompt, as opening the model would."""
    problems: list[str] = []
    notes: list[str] = []
    try:
        notes += Tokenizer.from_metadata(metadata).notes
    except LocalGlmError as error:
        problems.append(_in_words(error))
    try:
        with ChatTemplate.from_metadata(metadata) as template:
            notes += template.notes
    except LocalGlmError as error:
        problems.append(_in_words(error))
    return TextReadiness(tuple(problems), tuple(notes))


def _in_words(error: LocalGlmError) -> str:
    return f"{error.what}: {error.why}" if error.why else error.what
