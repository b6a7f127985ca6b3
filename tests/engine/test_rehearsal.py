"""What a chunk needs is what it takes when it is really computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localglm.backends.cpu.device import CpuDevice
from localglm.backends.cpu.library import Native
from localglm.engine import rehearsal
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed

ORACLE = Path(__file__).parent.parent / "oracle"
CONTEXT = 640
CHUNK = 128


class Watched:
    """The library, with the most memory of results and buffers before any op."""

    def __init__(self) -> None:
        self.library = Native(1, None)
        self.most = 0
        self.device: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def run(self, op: str, *arguments: Any) -> None:
        self.most = max(self.most, self.device.memory().buffers)
        self.library.run(op, *arguments)


def computed(path: Path, chunk: int) -> tuple[int, int]:
    """Return the bytes of loaded vectors, and the most that chunks take beside them and states."""
    native: Any = Watched()
    with open_model(path) as file:
        native.device = device = CpuDevice(native=native)
        geometry, weights = load_surveyed(file, survey(file), device)
        vectors = device.memory().buffers
        model = Model(geometry, weights, device)
        state = model.new_state(context=CONTEXT, cache_type="f16")
        for start in range(0, CONTEXT, chunk):
            if start == CONTEXT - chunk:
                native.most = 0
            model.forward(state, [1 + start % 7] * chunk, logits="last")
        most = native.most - vectors - state.nbytes
        device.close()
        return vectors, most


def rehearsed(path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> rehearsal.Scratch:
    """Rehearse, leaving out what ops take for themselves."""
    monkeypatch.setattr(rehearsal._NotingNative, "_own", lambda *_: 0)
    monkeypatch.setattr(rehearsal, "_BETWEEN_BLOCKS", 1 << 60)
    device = CpuDevice(1)
    with open_model(path) as file:
        out = rehearsal.rehearse(
            file, survey(file), device, context=CONTEXT, chunk=chunk, cache_type="f16"
        )
    device.close()
    return out


@pytest.mark.parametrize("name", ["tiny-q8_0.gguf", "tiny-kquants.gguf"])
def test_results_are_counted_to_the_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, most = computed(ORACLE / name, CHUNK)
    found = rehearsed(ORACLE / name, CHUNK, monkeypatch)
    assert found.vectors == vectors
    assert found.chunk == pytest.approx(most, rel=0.02)
    assert rehearsed(ORACLE / name, CHUNK // 2, monkeypatch).chunk < 0.7 * most


def test_what_ops_take_for_themselves_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ORACLE / "tiny-kquants.gguf"
    device = CpuDevice(1)
    with open_model(path) as file:
        found = survey(file)
        whole = rehearsal.rehearse(
            file, found, device, context=CONTEXT, chunk=CHUNK, cache_type="f16"
        )
    device.close()
    moe = found.geometry.moe
    hidden = 2 * CHUNK * moe.used * moe.expert_width * 4
    assert whole.chunk - rehearsed(path, CHUNK, monkeypatch).chunk > hidden


def test_threads_of_sets_with_panels_take_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def chunk(isa: str, threads: int) -> int:
        device = CpuDevice(threads, "portable")
        monkeypatch.setattr(CpuDevice, "isa", isa)
        with open_model(ORACLE / "tiny-kquants.gguf") as file:
            out = rehearsal.rehearse(
                file, survey(file), device, context=CONTEXT, chunk=CHUNK, cache_type="f16"
            )
        device.close()
        return out.chunk

    assert chunk("portable", 4) == chunk("portable", 1)
    assert chunk("avx2", 4) > chunk("avx2", 1)


def test_nothing_of_the_file_is_read_but_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    device = CpuDevice(1)
    with open_model(ORACLE / "tiny-q8_0.gguf") as file:
        found = survey(file)
        sizes = [item.info.nbytes for item in found.tensors.values()]
        assert max(sizes) < rehearsal._SMALL
        real = type(file)
        monkeypatch.setattr(real, "data", lambda *_: pytest.fail("a tensor was asked for"))
        rehearsal.rehearse(file, found, device, context=64, chunk=16, cache_type="f16")
    device.close()
