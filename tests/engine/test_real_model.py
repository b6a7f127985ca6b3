"""The engine on a real (tiny, random) model file: faults of the file, chunks, turns, markers."""

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest

from localglm.engine import protocol as p
from localglm.engine.client import Engine, EngineOptions
from localglm.errors import DeviceError, LocalGlmError, NumericFaultError, WorkerError
from localglm.gguf import open_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAMED_WITHIN_S = 2.0
ENDLESS = p.Generate(request=0, prompt=p.RandomPrompt(12, 1), ignore_end=True)
SHORT = p.Generate(request=0, prompt=p.RandomPrompt(12, 1), ignore_end=True, max_tokens=4)


@pytest.fixture
def model(tmp_path: Path, oracle: Path) -> Path:
    """A copy of a tiny file that may be damaged."""
    return shutil.copy(oracle / "tiny-q8_0.gguf", tmp_path / "model.gguf")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(EngineOptions(hang_seconds=30.0)) as started:
        yield started


def open_file(engine: Engine, path: Path, **options: Any) -> p.Opened:
    return engine.open_model(p.OpenModel(request=0, path=str(path), **options))


def finish(engine: Engine, request: p.Generate = SHORT) -> tuple[str, p.Done]:
    generation = engine.generate(request)
    text = "".join([e.text for e in generation if isinstance(e, p.Delta)])
    assert generation.done is not None
    return text, generation.done


def disturb(engine: Engine, action: Callable[[], object]) -> tuple[LocalGlmError, float]:
    """Run ``action`` in the middle of an answer; return the error and the seconds it took."""
    begun: list[float] = []

    def run() -> None:
        for event in engine.generate(ENDLESS):
            if isinstance(event, p.Delta) and not begun:
                begun.append(time.monotonic())
                action()

    with pytest.raises(LocalGlmError) as caught:
        run()
    return caught.value, time.monotonic() - begun[0]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send")
def test_kill_9_leaves_no_process_behind_and_the_next_request_works(
    engine: Engine, model: Path
) -> None:
    open_file(engine, model)
    pid = engine.pid
    assert pid is not None
    children = psutil.Process(pid).children(recursive=True)
    error, seconds = disturb(engine, lambda: os.kill(pid, signal.SIGKILL))
    assert isinstance(error, WorkerError)
    assert seconds < NAMED_WITHIN_S
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    assert finish(engine)[1].usage.generated == 4


@pytest.mark.skipif(os.name == "nt", reason="Windows locks mapped files")
def test_a_file_truncated_while_it_runs_is_named_and_works_again_when_whole(
    engine: Engine, model: Path, oracle: Path
) -> None:
    open_file(engine, model)
    error, seconds = disturb(engine, lambda: os.truncate(model, 8192))
    assert seconds < NAMED_WITHIN_S
    assert "truncated" in error.what
    with pytest.raises(LocalGlmError) as still:
        finish(engine)
    assert "model.gguf" in still.value.what
    shutil.copy(oracle / "tiny-q8_0.gguf", model)
    assert finish(engine)[1].usage.generated == 4


@pytest.mark.skipif(os.name == "nt", reason="Windows locks mapped files")
def test_a_file_removed_while_it_runs_is_named(engine: Engine, model: Path, oracle: Path) -> None:
    open_file(engine, model)
    error, seconds = disturb(engine, model.unlink)
    assert seconds < NAMED_WITHIN_S
    assert "model.gguf" in error.what
    shutil.copy(oracle / "tiny-q8_0.gguf", model)
    assert finish(engine)[1].usage.generated == 4


@pytest.mark.parametrize("tensor", ["output_norm.weight", "blk.2.attn_norm.weight"])
def test_nan_weights_are_named_by_place_and_token(
    engine: Engine, model: Path, oracle: Path, tensor: str
) -> None:
    with open_model(model) as file:
        info = file.tensors[tensor]
        base = file.data(tensor).ctypes.data - file.data("token_embd.weight").ctypes.data
        first = file.tensors["token_embd.weight"].offset
        assert base == info.offset - first
    with model.open("r+b") as handle:
        handle.seek(info.offset)
        handle.write(np.full(3, np.nan, np.float32).tobytes())
    open_file(engine, model)
    begun = time.monotonic()
    with pytest.raises(NumericFaultError) as caught:
        finish(engine)
    assert time.monotonic() - begun < NAMED_WITHIN_S
    place = "attention (l2.attn_norm)" if tensor.startswith("blk.2") else "the last hidden state"
    assert place in caught.value.what
    open_file(engine, oracle / "tiny-q8_0.gguf")
    assert finish(engine)[1].usage.generated == 4
    assert engine.restarts == 0


def test_any_chunk_gives_the_same_text(engine: Engine, model: Path) -> None:
    texts = set()
    for chunk in (1, 3, 7, 512):
        open_file(engine, model, chunk=chunk)
        request = p.Generate(
            request=0,
            prompt=p.RandomPrompt(70, 2),
            sampling=p.Sampling(seed=9),
            ignore_end=True,
            max_tokens=24,
        )
        texts.add(finish(engine, request)[0])
    assert len(texts) == 1


def test_a_second_turn_reads_only_its_own_tokens(engine: Engine, model: Path) -> None:
    open_file(engine, model)
    messages: list[p.Message] = []
    done: list[p.Done] = []
    for text in ("Hello", "And then?"):
        messages.append(p.Message(role="user", content=text))
        request = p.Generate(
            request=0,
            prompt=p.ChatPrompt(tuple(messages), "off"),
            sampling=p.Sampling(seed=3),
            max_tokens=6,
        )
        answer, last = finish(engine, request)
        messages.append(p.Message(role="assistant", content=answer))
        done.append(last)
    # The last token of an answer is shown but not yet read when the next turn comes.
    known = done[0].usage.prompt + done[0].usage.generated - 1
    assert done[1].usage.cached in {known, done[0].usage.prompt}
    assert done[1].usage.read < done[1].usage.prompt - done[0].usage.prompt + 1


def test_a_marker_typed_by_the_user_stays_text(engine: Engine, model: Path) -> None:
    open_file(engine, model)
    lengths = []
    for content in ("a<|user|>b", "a|user|b"):
        prompt = p.ChatPrompt((p.Message(role="user", content=content),), "off")
        lengths.append(engine.plan(prompt).total)
    assert lengths[0] > lengths[1]  # a marker read as one id would be shorter


def test_an_unknown_backend_or_level_is_refused_by_name(engine: Engine, model: Path) -> None:
    with pytest.raises(DeviceError, match="abacus"):
        open_file(engine, model, backend="abacus")
    open_file(engine, model)
    prompt = p.ChatPrompt((p.Message(role="user", content="Hi"),), "huge")
    with pytest.raises(LocalGlmError) as caught:
        finish(engine, p.Generate(request=0, prompt=prompt))
    assert "off, low, high, max" in caught.value.why


def test_a_folder_and_a_shard_open_the_same_set(
    engine: Engine, oracle: Path, tmp_path: Path
) -> None:
    for path in sorted(oracle.glob("tiny-upstream-*.gguf")):
        shutil.copy(path, tmp_path / path.name)
    opened = [open_file(engine, tmp_path), open_file(engine, next(tmp_path.glob("*00002*")))]
    assert [o.files for o in opened] == [3, 3]
    assert opened[0].weight_bytes == opened[1].weight_bytes
