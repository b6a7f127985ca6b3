"""Settings and flags arrive in what is sent to the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localglm.cli.request_options import Chosen
from localglm.engine.protocol import Sampling, TextPrompt

GIVEN = {
    "backend": "reference", "threads": "3", "context": "77", "chunk": "9", "cache_type": "f32",
    "max_tokens": "5", "temperature": "0.5", "top_p": "0.6", "top_k": "7", "min_p": "0.125",
    "seed": "8", "memory": "1.5GiB",
}  # fmt: skip
PLAIN: dict[str, Any] = {
    "repetition_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": 0.25,
    "stop": ("x", "y"), "thinking_budget": 4, "system": None,
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.toml"
    file.write_text("")
    monkeypatch.setenv("LOCALGLM_CONFIG", str(file))


def test_every_flag_arrives() -> None:
    chosen = Chosen.of({**PLAIN, **GIVEN})
    request = chosen.open_model(Path("/m.gguf"))
    assert (request.path, request.backend, request.threads) == ("/m.gguf", "reference", 3)
    assert (request.context, request.chunk, request.cache_type) == (77, 9, "f32")
    assert request.memory == 3 << 29
    generate = chosen.generate(TextPrompt("Hi"))
    assert generate.sampling == Sampling(
        temperature=0.5, top_k=7, top_p=0.6, min_p=0.125, repetition_penalty=1.5,
        presence_penalty=0.5, frequency_penalty=0.25, seed=8,
    )  # fmt: skip
    assert (generate.max_tokens, generate.stop, generate.thinking_budget) == (5, ("x", "y"), 4)


def test_without_flags_the_defaults_arrive_and_the_context_is_left_open() -> None:
    chosen = Chosen.of(PLAIN)
    request = chosen.open_model(Path("/m.gguf"))
    assert (request.threads, request.context, request.cache_type) == (None, None, "f16")
    assert request.memory is None
    assert chosen.open_model(Path("/m.gguf"), 500).context == 500
    assert chosen.generate(TextPrompt("Hi")).sampling.min_p == 0.0


def test_a_setting_of_the_environment_arrives_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALGLM_ENGINE_CONTEXT", "64")
    monkeypatch.setenv("LOCALGLM_ENGINE_THREADS", "2")
    request = Chosen.of(PLAIN).open_model(Path("/m.gguf"), 500)
    assert (request.context, request.threads) == (64, 2)
