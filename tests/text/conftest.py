from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from localglm.gguf import open_model
from localglm.text.template import ChatTemplate
from localglm.text.tokenizer import Tokenizer

ORACLE = Path(__file__).parents[1] / "oracle"


def read_metadata(name: str) -> dict[str, object]:
    with open_model(ORACLE / name) as file:
        return {
            key: list(value)
            if isinstance(value, Sequence) and not isinstance(value, str)
            else value
            for key, value in file.metadata.items()
        }


@pytest.fixture(scope="session")
def metadata() -> dict[str, object]:
    return read_metadata("tiny-f32.gguf")


@pytest.fixture(scope="session")
def upstream_metadata() -> dict[str, object]:
    return read_metadata("tiny-upstream-00001-of-00003.gguf")


@pytest.fixture(scope="session")
def cases() -> dict[str, object]:
    return json.loads((ORACLE / "text_cases.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def tokenizer(metadata: dict[str, object]) -> Tokenizer:
    return Tokenizer.from_metadata(metadata)


@pytest.fixture(scope="session")
def template(metadata: dict[str, object]) -> Iterator[ChatTemplate]:
    with ChatTemplate.from_metadata(metadata) as opened:
        yield opened
