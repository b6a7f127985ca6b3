"""Where experts live, what is counted, and what is refused, at made-up limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from localglm.engine.events import DiskRate
from localglm.engine.memory_limits import Ceiling
from localglm.engine.plan_text import everything_fits, is_plan, plan_line, plan_lines
from localglm.engine.planner import Base, Weights, Wish, make_plan, own_parts
from localglm.engine.rehearsal import Scratch
from localglm.errors import MemoryShortError
from localglm.experts.layout import expert_layout
from localglm.gguf import open_model
from localglm.model.inventory import survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from localglm.engine.events import MemoryPlan
    from localglm.model.inventory import Survey

BASE = Base(process=20_000_000, text=3_000_000)
SCRATCH = Scratch(vectors=50_000, chunk=4_000_000)
WISH = Wish(context=4096, chunk=256, cache_type="f32")


def no_disk(missing: float) -> DiskRate:
    return DiskRate(
        tokens_per_s=1 / (1 + missing), read_bytes=round(100 * missing), drive_bytes_per_s=1e9,
        is_measured=True, basis="a test",
    )  # fmt: skip


class Case:
    """A tiny file and what a plan for it needs."""

    def __init__(self, found: Survey) -> None:
        self.found = found
        self.weights = Weights.of(found, expert_layout(found))

    def own(self, wish: Wish = WISH) -> int:
        return sum(p.nbytes for p in own_parts(self.found.geometry, wish, BASE, SCRATCH))

    @property
    def all(self) -> int:
        return self.own() + self.weights.always + self.weights.experts

    @property
    def least(self) -> int:
        layout = self.weights.layout
        return self.own() + self.weights.always + layout.least_slots * layout.slot_bytes

    def plan(self, limits: int | Sequence[Ceiling], wish: Wish = WISH) -> MemoryPlan:
        if isinstance(limits, int):
            limits = [Ceiling(limits, "the test says so", "another test")]
        return make_plan(self.found, self.weights, wish, BASE, SCRATCH, limits, no_disk)


@pytest.fixture(scope="module")
def case() -> Iterator[Case]:
    from pathlib import Path

    with open_model(Path(__file__).parent.parent / "oracle/tiny-upstream-00001-of-00003.gguf") as f:
        yield Case(survey(f))


def test_experts_are_mapped_while_everything_fits_to_the_last_byte(case: Case) -> None:
    assert case.plan(case.all).experts == "mapped"
    assert case.plan(case.all - 1).experts == "streamed"


def test_every_byte_of_the_file_has_one_home(case: Case) -> None:
    total = sum(item.info.nbytes for item in case.found.tensors.values())
    mapped = case.plan(case.all)
    assert mapped.total("file", "disk") == total
    assert mapped.process == case.own()
    assert case.weights.unread > 0  # the draft block of this file
    streamed = case.plan(case.all - 1)
    assert streamed.total("file") == case.weights.always
    cached = streamed.expert_cache
    assert streamed.total("file", "disk") == total - min(cached, case.weights.experts)
    assert streamed.process == case.own() + cached


def test_a_cache_is_what_is_left_in_whole_slots(case: Case) -> None:
    slot = case.weights.layout.slot_bytes
    for spare in (0, 1, slot - 1, slot, 3 * slot + 7):
        plan = case.plan(case.least + spare)
        assert plan.expert_cache == (case.weights.layout.least_slots + spare // slot) * slot
        assert plan.total("memory", "file") <= case.least + spare
        assert plan.disk is not None


def test_more_cache_is_told_to_be_faster(case: Case) -> None:
    slow, fast = case.plan(case.least).disk, case.plan(case.all - 1).disk
    assert slow is not None
    assert fast is not None
    assert slow.read_bytes > fast.read_bytes


def test_one_byte_below_the_least_is_refused_with_the_numbers(case: Case) -> None:
    case.plan(case.least)
    with pytest.raises(MemoryShortError, match="and may take") as caught:
        case.plan(case.least - 1)
    assert "the test says so" in caught.value.why
    assert "interpreter and libraries" in caught.value.why
    assert "another test" in caught.value.try_


def test_what_is_advised_is_enough_and_what_is_not_is_not_advised(case: Case) -> None:
    limit = case.least - 100_000
    with pytest.raises(MemoryShortError) as caught:
        case.plan(limit)
    assert "--context 2048" in caught.value.try_
    assert "--cache-type f16" in caught.value.try_
    case.plan(limit, replace(WISH, context=2048))
    case.plan(limit, replace(WISH, cache_type="f16"))
    with pytest.raises(MemoryShortError) as caught:
        case.plan(1_000_000)
    assert "--context" not in caught.value.try_
    assert "--cache-type" not in caught.value.try_


def test_the_tightest_limit_counts_and_pages_only_where_they_matter(case: Case) -> None:
    wide = Ceiling(10 * case.all, "wide", "")
    tight = Ceiling(case.all - 1, "tight", "")
    assert case.plan([wide, tight]).experts == "streamed"
    assert case.plan([wide, tight]).reason == "tight"
    bare = replace(tight, counts_mapped=False)
    assert case.plan([wide, bare]).experts == "mapped"
    with pytest.raises(MemoryShortError, match="this needs"):
        case.plan([wide, replace(bare, nbytes=case.own() - 1)])


def test_a_larger_wish_takes_more_of_its_own_part_only(case: Case) -> None:
    geometry = case.found.geometry

    def parts(wish: Wish) -> dict[str, int]:
        found = own_parts(geometry, wish, BASE, SCRATCH)
        return {part.name.split(" ", maxsplit=1)[0]: part.nbytes for part in found}

    small, large = parts(WISH), parts(replace(WISH, context=8192))
    assert large["caches"] == 2 * small["caches"]
    assert {name for name in small if small[name] != large[name]} == {"caches", "scores,"}
    assert parts(replace(WISH, cache_type="f16"))["caches"] * 2 == small["caches"]


def test_a_plan_in_words_names_every_part_and_what_is_slow(case: Case) -> None:
    mapped, streamed = case.plan(case.all), case.plan(case.least)
    assert is_plan(plan_line(mapped))
    assert everything_fits(plan_line(mapped))
    assert not everything_fits(plan_line(streamed))
    assert "tok/s" in plan_line(streamed)
    text = "\n".join(plan_lines(streamed))
    for part in streamed.parts:
        assert part.name in text
    assert "a test" in text
    assert "estimated" not in "\n".join(plan_lines(mapped))
    assert not is_plan("loading weights")
