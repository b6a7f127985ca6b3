"""Opening a file that does not fit: the same answer, from a cache of experts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from localglm import paths
from localglm.engine.accounting import token_bytes
from localglm.engine.disk_rate import Drive, estimate
from localglm.engine.memory_limits import Ceiling
from localglm.engine.opening import account, open_model_file
from localglm.engine.protocol import OpenModel
from localglm.errors import MemoryShortError
from localglm.experts import minimum_memory

if TYPE_CHECKING:
    from pathlib import Path

    from localglm.engine.opening import OpenedFile

IDS = [5, 9, 200, 31, 7, 7, 100]
SLACK = 1 << 20  # what the process may have grown by between two plans


@pytest.fixture(autouse=True)
def fresh_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "data_folder", lambda: tmp_path)


def request(**more: Any) -> OpenModel:
    path = str(paths.demo_model())
    return OpenModel(request=0, path=path, context=64, chunk=16, **more)


def opened(asked: OpenModel) -> OpenedFile:
    return open_model_file(asked, lambda *_: None)


def streamed(monkeypatch: pytest.MonkeyPatch) -> OpenedFile:
    """Open with a limit that leaves the least for experts, whatever this process holds by now."""

    def limits(*_: Any) -> list[Ceiling]:
        plan, _context = made
        least = minimum_memory(found)
        experts = next(part.nbytes for part in plan.parts if part.name == "routed experts")
        assert least < experts
        return [Ceiling(plan.total("memory", "file") - experts + least + SLACK, "", "")]

    whole = opened(request())
    found = whole.found
    whole.close()
    made = account(request())
    monkeypatch.setattr("localglm.engine.accounting.ceilings", limits)
    return opened(request())


def answer(file: OpenedFile) -> list[float]:
    state = file.model.new_state(context=64, cache_type="f16")
    logits = file.model.forward(state, IDS)
    assert logits is not None
    return [float(x) for x in logits[-1]]


def test_a_set_that_does_not_fit_is_read_from_the_disk_and_answers_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = opened(request())
    expected = answer(whole)
    assert whole.memory_plan.experts == "mapped"
    assert whole.expert_counts() is None
    whole.close()
    file = streamed(monkeypatch)
    plan = file.memory_plan
    assert plan.experts == "streamed"
    assert plan.disk is not None
    assert answer(file) == expected
    counts = file.expert_counts()
    assert counts is not None
    assert counts.misses + counts.foreseen > 0
    assert counts.memory == plan.expert_cache
    file.close()


def test_the_cache_can_be_taken_smaller_and_back_while_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = streamed(monkeypatch)
    cache = file.expert_cache
    assert cache is not None
    before = answer(file)
    cache.resize(cache.least)
    assert answer(file) == before
    with pytest.raises(MemoryShortError):
        cache.resize(cache.least - 1)
    cache.resize(cache.most)
    assert answer(file) == before
    file.close()


def test_an_account_loads_nothing_and_counts_the_same_parts() -> None:
    plan, context = account(request())
    file = opened(request())
    assert context == 64
    assert [part.name for part in plan.parts] == [part.name for part in file.memory_plan.parts]
    assert plan.parts[2:] == file.memory_plan.parts[2:]
    file.close()


def test_a_cap_of_the_user_below_the_least_is_refused_by_its_name() -> None:
    with pytest.raises(MemoryShortError, match="may take") as caught:
        opened(request(memory=3 << 20))
    assert "the setting engine.memory is 3.0 MiB" in caught.value.why
    assert "a larger --memory" in caught.value.try_


def test_the_estimate_says_what_is_measured_and_what_is_assumed() -> None:
    figures = {"expert_bytes": 10**9, "token_bytes": 3 * 10**9, "threads": 1}
    measured = estimate(Drive(16, 2e9), missing=0.5, **figures)
    assert measured.read_bytes == 5 * 10**8
    assert measured.tokens_per_s == pytest.approx(1 / (0.25 + 0.5))
    assert "(measured)" in measured.basis
    assumed = estimate(Drive(16, None), missing=0.5, **figures)
    assert not assumed.is_measured
    assert assumed.basis.count("(assumed)") == 2
    assert estimate(Drive(16, 2e9), missing=0.0, **figures).tokens_per_s == pytest.approx(2.0)


def test_the_experts_of_a_token_are_a_share_of_its_bytes() -> None:
    file = opened(request())
    some, every = token_bytes(file.found, only_experts=True), token_bytes(file.found)
    assert 0 < some < every
    file.close()
