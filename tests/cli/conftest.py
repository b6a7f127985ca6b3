"""Model files for the commands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localglm.gguf import open_model
from localglm.text.tokenizer import Tokenizer

TINY = Path(__file__).parent.parent / "oracle" / "tiny-q8_0.gguf"


@pytest.fixture(scope="session")
def endless_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that never ends a turn at temperature 0: the logits of its markers are zero."""
    path = shutil.copy(TINY, tmp_path_factory.mktemp("model") / "endless.gguf")
    with open_model(TINY) as file:
        info = file.tensors["output.weight"]
        tokenizer = Tokenizer.from_metadata(file.metadata)
    row = info.nbytes // info.shape[0]
    with path.open("r+b") as handle:
        for marker in tokenizer.markers.texts:
            number = tokenizer.marker_id(marker)
            assert number is not None
            handle.seek(info.offset + number * row)
            handle.write(bytes(row))
    return path
