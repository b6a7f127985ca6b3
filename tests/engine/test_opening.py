"""Opening a file: what is told about it, and noticing that it changed."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from localglm.backends.reference.device import ReferenceDevice
from localglm.engine.accounting import token_bytes
from localglm.engine.cores import auto_threads, cores_here
from localglm.engine.devices import DeviceChoice, default_threads, processors
from localglm.engine.file_watch import FileMark, FileWatch
from localglm.engine.memory_limits import Ceiling
from localglm.engine.needs import cache_bytes, thread_notes
from localglm.engine.opening import open_model_file
from localglm.engine.protocol import OpenModel
from localglm.errors import DeviceError, MemoryShortError, ModelFileError
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.layer_state import KdaState
from localglm.model.load import load_model

if TYPE_CHECKING:
    from pathlib import Path


def watch(path: Path) -> FileWatch:
    return FileWatch({path: FileMark.of(path)})


def test_an_unchanged_file_passes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1234")
    watch(path).verify()


@pytest.mark.parametrize(
    ("change", "named"),
    [("truncate", "truncated"), ("remove", "cannot be reached"), ("replace", "was changed")],
)
def test_each_change_of_a_file_is_told_apart(tmp_path: Path, change: str, named: str) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"1234")
    other.write_bytes(b"5678")
    watching = watch(path)
    if change == "truncate":
        os.truncate(path, 2)
    elif change == "remove":
        path.unlink()
    else:
        other.replace(path)
    with pytest.raises(ModelFileError, match=named):
        watching.verify()


def test_a_token_reads_the_used_experts_one_embedding_row_and_no_draft_block(
    oracle: Path,
) -> None:
    with open_model(oracle / "tiny-upstream-00001-of-00003.gguf") as file:
        found = survey(file)
        expected = 0
        for info in file.tensors.values():
            if info.name.startswith("blk.4."):
                continue  # the draft block of this file
            if "_exps" in info.name:
                expected += info.nbytes * 8 // 24
            elif info.name == "token_embd.weight":
                expected += info.nbytes // info.shape[0]
            else:
                expected += info.nbytes
        everything = sum(info.nbytes for info in file.tensors.values())
    assert token_bytes(found) == expected
    assert expected < everything


def test_the_facts_of_a_file_are_those_of_its_header(oracle: Path) -> None:
    stages: list[str] = []
    request = OpenModel(request=1, path=str(oracle / "tiny-clamp.gguf"), backend="reference")
    opened = open_model_file(request, lambda stage, _done, _total: stages.append(stage))
    facts = opened.facts
    opened.close()
    assert (facts.architecture, facts.backend, facts.files) == ("glm5next", "reference", 1)
    assert facts.vocabulary == 384
    assert "the reference back end takes more memory than was planned" in facts.notes
    assert facts.plan is not None
    assert stages[0] == "opening the file"
    assert "loading weights" in stages


def test_caches_are_counted_as_a_state_holds_them(oracle: Path) -> None:
    with open_model(oracle / "tiny-q8_0.gguf") as file:
        geometry = survey(file).geometry
        _, weights = load_model(file, device := ReferenceDevice())
        model = Model(geometry, weights, device)
        count = 16 * geometry.indexer.pool
        for kind in ("f16", "f32"):
            state = model.new_state(context=count, cache_type=kind)
            model.forward(state, [1] * count)
            held = [layer for layer in state.layers if not isinstance(layer, KdaState)]
            size = 2 if kind == "f16" else 4
            rows = sum(
                size * store.width * store.count
                for layer in held for store in (layer.latents, layer.pools)
            )  # fmt: skip
            assert cache_bytes(geometry, count, kind) == rows


def test_what_cannot_fit_is_refused_before_the_weights_are_loaded(
    oracle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []
    path = str(oracle / "tiny-q8_0.gguf")
    limits = [Ceiling(1 << 20, "a small computer", "another one")]
    monkeypatch.setattr("localglm.engine.accounting.ceilings", lambda *_: limits)
    with pytest.raises(MemoryShortError, match=r"may take 1\.0 MiB"):
        open_model_file(
            OpenModel(request=1, path=path), lambda stage, _done, _total: stages.append(stage)
        )
    assert "counting memory" in stages
    assert "loading weights" not in stages


def test_backend_and_threads_reach_the_device(
    oracle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices: list[DeviceChoice] = []

    def refuse(choice: DeviceChoice) -> None:
        choices.append(choice)
        raise DeviceError("not today")

    monkeypatch.setattr("localglm.engine.opening.open_device", refuse)
    path = str(oracle / "tiny-q8_0.gguf")
    with pytest.raises(DeviceError):
        open_model_file(OpenModel(request=1, path=path, backend="cpu", threads=3), lambda *_: None)
    assert choices == [DeviceChoice("cpu", 3)]


def test_more_threads_than_processors_are_told_and_obeyed() -> None:
    assert thread_notes(None, 4) == thread_notes(4, 4) == []
    (note,) = thread_notes(9, 4)
    assert note.startswith("9 threads were asked for and 4 can run")
    assert processors() >= 1


def test_the_default_threads_are_those_auto_stands_for() -> None:
    assert default_threads() == auto_threads(cores_here()) <= processors()


def test_a_look_at_once_does_not_wait_for_the_next_interval(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1234")
    watching = watch(path)
    watching.verify()
    os.truncate(path, 2)
    watching.looked = time.monotonic()
    watching.verify()
    with pytest.raises(ModelFileError, match="truncated"):
        watching.verify(at_once=True)


def test_a_file_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + bytes(40))
    request = OpenModel(request=1, path=str(tmp_path / "bad.gguf"))
    with pytest.raises(ModelFileError):
        open_model_file(request, lambda _stage, _done, _total: None)
