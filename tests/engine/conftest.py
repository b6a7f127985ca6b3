"""Engines over the toy model of this folder, and over the tiny files of the oracle."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from engine_toy import COMMAND  # noqa: E402 - the folder is on the path only now

from localglm.engine.client import Engine, EngineOptions  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def toy_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a toy model file with the given behaviour."""

    def write(name: str = "toy.json", **behaviour: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(behaviour))
        return path

    return write


@pytest.fixture
def toy_engine() -> Iterator[Engine]:
    """An engine process that opens toy files."""
    with Engine(EngineOptions(command=COMMAND, hang_seconds=20.0)) as engine:
        yield engine


@pytest.fixture
def oracle() -> Path:
    """The folder with the tiny model files."""
    return HERE.parent / "oracle"
