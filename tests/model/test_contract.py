"""The arithmetic contract end to end: chunk, threads and instruction set change no bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import synthetic
from localglm.backends.cpu.library import ISA_IDS, library_path
from localglm.backends.cpu.library import load as load_library
from localglm.engine.devices import DeviceChoice, opened
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.load import load_model
from tests import oracle_archive as oracle

CHUNKS = (1, 3, 7, 64, 512)


def logits(path: Path, ids: list[int], chunk: int, choice: DeviceChoice) -> np.ndarray:
    with opened(choice) as device, open_model(path) as file:
        model = Model(*load_model(file, device), device)
        state = model.new_state(context=len(ids))
        rows = [
            model.forward(state, ids[a : a + chunk], logits="all")
            for a in range(0, len(ids), chunk)
        ]
    return np.concatenate(rows)


def available_isas() -> list[str]:
    library = load_library(library_path())
    return [name for name, number in ISA_IDS.items() if library.lg_isa_supported(number)]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", oracle.NAMES)
def test_chunks_threads_and_instruction_sets_give_the_same_bits(name: str) -> None:
    path, ids = oracle.model_path(name), oracle.Archive.load(name).arrays["prompt"].tolist()
    base = logits(path, ids, len(ids), DeviceChoice(threads=1))
    for chunk in CHUNKS:
        assert same_bits(base, logits(path, ids, chunk, DeviceChoice(threads=2))), chunk
    for threads in (2, 5):
        assert same_bits(base, logits(path, ids, 16, DeviceChoice(threads=threads))), threads
    for isa in available_isas():
        assert same_bits(base, logits(path, ids, 32, DeviceChoice(isa=isa))), isa


def test_the_comparison_notices_another_arithmetic() -> None:
    path, ids = oracle.model_path("tiny-q8_0"), list(range(40))
    ours = logits(path, ids, 40, DeviceChoice())
    exact = logits(path, ids, 40, DeviceChoice(exact_activations=True))
    assert not same_bits(ours, exact)


@pytest.fixture(scope="module")
def full_width(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("synthetic") / "full-width.gguf"
    # A budget of 512 cells, so that most of 1,200 tokens choose what they attend.
    synthetic.write(path, synthetic.geometry(4, 12, 2048, top_k=512), "iq2")
    yield path
    path.unlink()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_full_width_prompt_of_1200_tokens_gives_the_same_bits(full_width: Path) -> None:
    ids = np.random.default_rng(3).integers(0, 2048, 1200).tolist()
    base = logits(full_width, ids, 1200, DeviceChoice())
    assert np.isfinite(base).all()
    for chunk in CHUNKS:
        assert same_bits(base, logits(full_width, ids, chunk, DeviceChoice())), chunk
    for threads in (1, 5):
        assert same_bits(base, logits(full_width, ids, 512, DeviceChoice(threads=threads))), threads


@pytest.mark.long
@pytest.mark.timeout(600)
def test_portable_and_vector_kernels_agree_at_full_width(full_width: Path) -> None:
    ids = np.random.default_rng(4).integers(0, 2048, 48).tolist()
    base = logits(full_width, ids, 48, DeviceChoice())
    for isa in available_isas():
        assert same_bits(base, logits(full_width, ids, 16, DeviceChoice(isa=isa))), isa
