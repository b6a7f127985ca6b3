"""One request after the other on the toy model: reuse, stops, limits, thinking, faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine_toy as toy
import pytest

from localglm.engine import protocol as p
from localglm.engine.control import Control, Status
from localglm.engine.service import Service
from localglm.settings.schema import DEFAULT_CONTEXT, Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Bench:
    """A service in this process, with its events."""

    def __init__(
        self, path: Path, between: Callable[[], None] = lambda: None, **options: Any
    ) -> None:
        self.events: list[p.Event] = []
        self.opened: toy.ToyOpened | None = None
        self.watch: Callable[[p.Event, Control], None] = lambda _event, _control: None
        self.control = Control()
        self.service = Service(self._open, self._take, Status(), between)
        self.send(p.OpenModel(request=1, path=str(path), **options))

    def _open(self, request: p.OpenModel, progress: Any) -> toy.ToyOpened:
        self.opened = toy.open_toy(request, progress)
        return self.opened

    def _take(self, event: p.Event) -> None:
        self.events.append(event)
        self.watch(event, self.control)

    def send(self, request: p.Request, budget: int | None = None) -> p.Event:
        self.control = Control(budget)
        self.service.obey(request, self.control)
        return self.events[-1]

    def ask(self, prompt: Any, budget: int | None = None, **fields: Any) -> Any:
        self.events.clear()
        assert self.opened is not None
        self.opened.model.fed.clear()
        if isinstance(prompt, str):
            prompt = p.TextPrompt(prompt)
        return self.send(p.Generate(request=2, prompt=prompt, **fields), budget)

    def text(self, kind: str = "answer") -> str:
        return "".join(e.text for e in self.events if isinstance(e, p.Delta) and e.kind == kind)

    @property
    def fed(self) -> list[int]:
        assert self.opened is not None
        return self.opened.model.fed


def chat(*turns: str, effort: str = "off", thoughts: tuple[str, ...] = ()) -> p.ChatPrompt:
    messages = []
    for i, turn in enumerate(turns):
        thought = thoughts[i // 2] if i % 2 and thoughts else None
        role = "assistant" if i % 2 else "user"
        messages.append(p.Message(role=role, content=turn, reasoning=thought))
    return p.ChatPrompt(tuple(messages), effort)


GREEDY = p.Sampling(temperature=0.0)


# -- text in, text out ---------------------------------------------------------------------------
def test_the_scripted_answer_comes_out_and_ends_at_the_turn(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think></think>Hello there.<|user|>"))
    done = bench.ask(chat("Hi"), sampling=GREEDY)
    assert bench.text() == "Hello there."
    assert done.reason == "end"
    assert done.usage == p.Usage(prompt=6, cached=0, read=6, generated=13, thinking=0)


@pytest.mark.parametrize("chunk", [1, 3, 7, 512])
def test_the_same_seed_gives_the_same_text_for_any_chunk(toy_file: Any, chunk: int) -> None:
    sampling = p.Sampling(seed=11)
    path = toy_file()
    whole, other = Bench(path), Bench(path, chunk=chunk)
    whole.ask("once upon a time", sampling=sampling, max_tokens=40)
    other.ask("once upon a time", sampling=sampling, max_tokens=40)
    assert other.text() == whole.text()
    other.ask("once upon a time", sampling=p.Sampling(seed=12), max_tokens=40)
    assert other.text() != whole.text()


def test_prefill_progress_reaches_the_total_in_chunks(toy_file: Any) -> None:
    bench = Bench(toy_file(), chunk=4)
    bench.ask("0123456789", max_tokens=1)
    steps = [(e.done, e.total) for e in bench.events if isinstance(e, p.Prefill)]
    assert steps == [(0, 10), (4, 10), (8, 10), (10, 10)]


def test_a_stop_string_ends_the_answer_and_is_not_shown(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think></think>one END two<|user|>"))
    done = bench.ask(chat("Hi"), sampling=GREEDY, stop=("END", "zzz"))
    assert bench.text() == "one "
    assert (done.reason, done.matched_stop) == ("stop", "END")


def test_a_stop_string_in_the_thinking_does_not_end_it(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think>END?</think>yes END<|user|>"))
    done = bench.ask(chat("Hi", effort="high"), sampling=GREEDY, stop=("END",))
    assert bench.text("thinking") == "END?"
    assert bench.text() == "yes "
    assert done.reason == "stop"


def test_the_token_limit_ends_the_answer(toy_file: Any) -> None:
    bench = Bench(toy_file())
    done = bench.ask("abc", max_tokens=5)
    assert (done.reason, done.usage.generated, len(bench.text())) == ("length", 5, 5)
    assert len(bench.fed) == 3 + 4  # the last token needs no step


def test_no_rate_is_given_without_tokens_behind_it(toy_file: Any) -> None:
    bench = Bench(toy_file())
    done = bench.ask("abc", max_tokens=0)
    assert done.usage.generated == 0
    assert done.timings.decode_tokens_per_s is None
    assert done.timings.prefill_tokens_per_s is not None
    again = bench.ask("abc", max_tokens=0)
    assert again.usage.read == 0
    assert again.timings.prefill_tokens_per_s is None


def test_short_requests_are_answered_between_the_steps(toy_file: Any) -> None:
    calls: list[int] = []
    bench = Bench(toy_file(), between=lambda: calls.append(len(bench.text())))
    bench.ask("abc", max_tokens=6)
    assert calls[-5:] == [1, 2, 3, 4, 5]


# -- refusals ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("length", "fields", "named"),
    [
        (40, {}, "the prompt has 40 tokens and the context holds 32"),
        (32, {}, "the prompt has 32 tokens and the context holds 32"),
        (20, {"max_tokens": 13}, "20 prompt tokens and 13 new ones do not fit a context of 32"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_counts(
    toy_file: Any, length: int, fields: Any, named: str
) -> None:
    bench = Bench(toy_file(), context=32)
    failed = bench.ask("x" * length, **fields)
    assert (failed.kind, failed.what) == ("RequestError", named)
    assert bench.fed == []


def test_a_prompt_that_just_fits_works(toy_file: Any) -> None:
    bench = Bench(toy_file(), context=32)
    assert bench.ask("x" * 20, max_tokens=12).usage.generated == 12
    assert bench.ask("x" * 31).usage.generated == 1


def test_a_bad_sampling_value_is_refused_before_anything_is_read(toy_file: Any) -> None:
    bench = Bench(toy_file())
    failed = bench.ask("abc", sampling=p.Sampling(top_p=7.0))
    assert failed.kind == "UsageError"
    assert bench.fed == []


def test_a_context_beyond_the_files_own_is_refused_with_both_numbers(toy_file: Any) -> None:
    bench = Bench(toy_file(context_length=64), context=65)
    failed = bench.events[-1]
    assert isinstance(failed, p.Failed)
    assert "65" in failed.what
    assert "64" in failed.why
    assert isinstance(Bench(toy_file(context_length=64), context=64).events[-1], p.Opened)


@pytest.mark.parametrize(("holds", "context"), [(64, 64), (100_000, DEFAULT_CONTEXT)])
def test_the_default_context_gives_way_to_a_smaller_file(
    toy_file: Any, holds: int, context: int
) -> None:
    opened = Bench(toy_file(context_length=holds)).events[-1]
    assert isinstance(opened, p.Opened)
    assert opened.context == context
    assert (Settings().context, DEFAULT_CONTEXT) == (None, 32768)


def test_a_request_without_a_model_says_so(toy_file: Any) -> None:
    bench = Bench(toy_file())
    bench.send(p.CloseModel(request=3))
    failed = bench.send(p.Memory(request=4))
    assert isinstance(failed, p.Failed)
    assert failed.what == "no model is open"


# -- reading only what is new --------------------------------------------------------------------
def test_a_second_turn_reads_only_its_new_tokens(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think></think>Hello.<|user|>"))
    first = bench.ask(chat("Hi"), sampling=GREEDY)
    known = first.usage.prompt + len("Hello.")
    second = bench.ask(chat("Hi", "Hello.", "And?"), sampling=GREEDY)
    assert second.usage.cached == known
    assert second.usage.read == len("And?") + 4  # user, assistant, think, /think
    assert bench.fed[: second.usage.read] == toy.encode("<|user|>And?<|assistant|><think></think>")


def test_a_second_turn_equals_reading_everything_again(toy_file: Any) -> None:
    sampling = p.Sampling(seed=4)
    path = toy_file()
    bench, fresh = Bench(path), Bench(path)
    bench.ask(chat("Hi"), sampling=sampling, max_tokens=9)
    turns = chat("Hi", bench.text(), "And?")
    reused = bench.ask(turns, sampling=sampling, max_tokens=20)
    whole = fresh.ask(turns, sampling=sampling, max_tokens=20)
    assert reused.usage.cached > 0
    assert whole.usage.cached == 0
    assert bench.text() == fresh.text()


def test_dropped_thinking_goes_back_to_the_end_of_the_prompt(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think>hm</think>Hello.<|user|>"))
    first = bench.ask(chat("Hi", effort="high"), sampling=GREEDY)
    second = bench.ask(chat("Hi", "Hello.", "And?", effort="high"), sampling=GREEDY)
    assert second.usage.cached == first.usage.prompt


def test_a_retry_reads_nothing(toy_file: Any) -> None:
    bench = Bench(toy_file())
    bench.ask(chat("Hi"), sampling=p.Sampling(seed=1), max_tokens=8)
    before = bench.text()
    done = bench.ask(chat("Hi"), sampling=p.Sampling(seed=1), max_tokens=8)
    assert (done.usage.read, bench.text()) == (0, before)
    bench.ask(chat("Hi"), sampling=p.Sampling(seed=2), max_tokens=8)
    assert bench.text() != before


def test_an_edit_restores_the_nearest_point_and_says_so_beforehand(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think></think>Hello.<|user|>"))
    first = bench.ask(chat("Hi"), sampling=GREEDY)
    bench.ask(chat("Hi", "Hello.", "And?"), sampling=GREEDY)
    edited = chat("Hi", "Hello.", "But?")
    plan = bench.send(p.Plan(request=5, prompt=edited))
    assert isinstance(plan, p.PlanReply)
    done = bench.ask(edited, sampling=GREEDY)
    assert done.usage.cached == plan.cached == first.usage.prompt + len("Hello.")
    assert done.usage.read == plan.read == plan.total - plan.cached


def test_another_conversation_starts_from_nothing(toy_file: Any) -> None:
    bench = Bench(toy_file())
    bench.ask(chat("Hi"), max_tokens=4)
    assert bench.ask(chat("Other"), max_tokens=4).usage.cached == 0


def test_sessions_are_apart_and_the_oldest_is_forgotten(toy_file: Any) -> None:
    bench = Bench(toy_file())
    for name in "abcde":
        bench.ask(chat("Hi"), session=name, max_tokens=2)
    assert bench.ask(chat("Hi"), session="e", max_tokens=2).usage.read == 0
    assert bench.ask(chat("Hi"), session="a", max_tokens=2).usage.cached == 0


def test_old_points_are_forgotten_and_the_newest_four_kept(toy_file: Any) -> None:
    bench = Bench(toy_file())
    text = "a"
    for _ in range(8):
        text += "bc"
        bench.ask(text, max_tokens=0)
    memory = bench.send(p.Memory(request=3))
    assert isinstance(memory, p.MemoryReply)
    assert memory.snapshots == 4
    assert bench.ask(text[:-6], max_tokens=0).usage.read == 0
    assert bench.ask(text[:5], max_tokens=0).usage.read > 0


@pytest.mark.parametrize("cache_type", ["f16", "f32"])
def test_the_cache_type_reaches_the_state(toy_file: Any, cache_type: str) -> None:
    bench = Bench(toy_file(), cache_type=cache_type)
    bench.ask("abc", max_tokens=1)
    assert bench.opened is not None
    assert bench.opened.model.cache_types == {cache_type}


def test_a_cut_answer_goes_on_as_if_it_had_not_been_cut(toy_file: Any) -> None:
    script = "<think>one two three</think>four five six<|user|>"
    prompt = chat("Hi", effort="high")
    bench = Bench(toy_file(script=script))
    bench.ask(prompt, sampling=GREEDY, max_tokens=5)
    done = bench.ask(p.Continuation(), sampling=GREEDY, max_tokens=14)
    assert (bench.text("thinking"), bench.text(), done.usage.read) == ("wo three", "four ", 1)
    last = bench.ask(p.Continuation(), sampling=GREEDY)
    assert (bench.text("thinking"), bench.text(), last.reason) == ("", "five six", "end")
    failed = bench.ask(p.Continuation())
    assert failed.what == "there is no answer to go on with"
    assert failed.why == "the last answer ended by itself"


def test_why_there_is_nothing_to_go_on_with_is_told_apart(toy_file: Any) -> None:
    bench = Bench(toy_file())
    assert "since the engine was started" in bench.ask(p.Continuation()).why
    bench.watch = lambda _event, control: setattr(control, "is_cancelled", True)
    assert bench.ask("abc").usage.generated == 0
    assert "stopped before its answer began" in bench.ask(p.Continuation()).why


def test_a_continuation_that_does_not_fit_can_be_tried_again(toy_file: Any) -> None:
    bench = Bench(toy_file(), context=16)
    bench.ask("abc", max_tokens=5)
    assert "do not fit" in bench.ask(p.Continuation(), max_tokens=50).what
    assert bench.ask(p.Continuation(), max_tokens=2).usage.generated == 2


# -- kept states ---------------------------------------------------------------------------------
def test_a_snapshot_is_restored_and_dropped(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think></think>Hello.<|user|>"))
    bench.ask(chat("Hi"), sampling=GREEDY)
    kept = bench.send(p.Snapshot(request=3))
    assert isinstance(kept, p.Reply)
    assert kept.handle is not None
    bench.ask(chat("Hi", "Hello.", "And?"), sampling=GREEDY)
    assert isinstance(bench.send(p.Restore(request=4, handle=kept.handle)), p.Reply)
    stats = bench.send(p.Stats(request=5))
    assert isinstance(stats, p.StatsReply)
    assert stats.sessions == {"main": 6 + len("Hello.")}
    bench.send(p.Drop(request=6, handle=kept.handle))
    gone = bench.send(p.Restore(request=7, handle=kept.handle))
    assert isinstance(gone, p.Failed)
    assert "is gone" in gone.what


def test_a_fork_goes_its_own_way(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think></think>Hello.<|user|>"))
    bench.ask(chat("Hi"), sampling=GREEDY)
    bench.send(p.Fork(request=3, session="main", target="copy"))
    done = bench.ask(chat("Hi", "Hello.", "And?"), session="copy", sampling=GREEDY)
    assert done.usage.cached == 6 + len("Hello.")
    stats = bench.send(p.Stats(request=5))
    assert isinstance(stats, p.StatsReply)
    assert stats.sessions["main"] == 6 + len("Hello.")


def test_an_unknown_session_is_named_with_the_known_ones(toy_file: Any) -> None:
    bench = Bench(toy_file())
    bench.ask("abc", max_tokens=1)
    failed = bench.send(p.Fork(request=3, session="nope", target="x"))
    assert isinstance(failed, p.Failed)
    assert "'nope'" in failed.what
    assert "main" in failed.why


# -- thinking ------------------------------------------------------------------------------------
def test_ending_the_thinking_closes_the_block_and_an_answer_follows(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think>aaaa</think>done<|user|>"))

    def stop_thinking(event: p.Event, control: Control) -> None:
        if isinstance(event, p.Delta) and event.kind == "thinking":
            control.wants_answer = True

    bench.watch = stop_thinking
    bench.ask(chat("Hi", effort="high"), sampling=GREEDY)
    assert bench.text("thinking") == "a"
    assert toy.CLOSE in bench.fed
    assert bench.text()


def test_the_thinking_budget_is_kept_and_told(toy_file: Any) -> None:
    bench = Bench(toy_file())
    done = bench.ask(chat("Hi", effort="high"), budget=6, max_tokens=30)
    assert done.usage.thinking == 6
    assert len(bench.text("thinking")) == 6
    assert len(bench.text()) == 24
    notices = [e.text for e in bench.events if isinstance(e, p.Notice)]
    assert notices == ["the thinking reached its budget of 6 tokens and was ended"]
    assert bench.ask(chat("Hi", effort="high"), max_tokens=30).usage.thinking == 30


def test_thinking_that_repeats_itself_is_ended_with_a_notice(toy_file: Any) -> None:
    bench = Bench(toy_file(script="<think>" + "so " * 400))
    bench.ask(chat("Hi", effort="high"), sampling=GREEDY, max_tokens=300)
    assert "repeated itself" in next(e.text for e in bench.events if isinstance(e, p.Notice))
    assert len(bench.text("thinking")) == 256
    free = Bench(toy_file("free.json"))
    free.ask(chat("Hi", effort="high"), max_tokens=300)
    assert not [e for e in free.events if isinstance(e, p.Notice)]


# -- cancel and faults ---------------------------------------------------------------------------
def test_cancel_keeps_the_partial_answer_within_one_step(toy_file: Any) -> None:
    bench = Bench(toy_file())

    def stop(event: p.Event, control: Control) -> None:
        control.is_cancelled = len(bench.text()) >= 3 or control.is_cancelled

    bench.watch = stop
    done = bench.ask("abc", max_tokens=100)
    assert (done.reason, len(bench.text()), done.usage.generated) == ("cancelled", 3, 3)


def test_cancel_while_reading_leaves_the_last_whole_chunk(toy_file: Any) -> None:
    bench = Bench(toy_file(), chunk=8)

    def stop(event: p.Event, control: Control) -> None:
        control.is_cancelled = isinstance(event, p.Prefill) and event.done >= 16

    bench.watch = stop
    done = bench.ask("x" * 50)
    assert (done.reason, done.usage.read, bench.text()) == ("cancelled", 16, "")
    bench.watch = lambda _event, _control: None
    assert bench.ask("x" * 50, max_tokens=1).usage.cached == 16


@pytest.mark.parametrize(("nan_at", "stage"), [(2, "reading"), (9, "writing")])
def test_nan_names_the_layer_and_the_token_and_the_next_request_works(
    toy_file: Any, nan_at: int, stage: str
) -> None:
    bench = Bench(toy_file(nan_at=nan_at))
    failed = bench.ask("abcdef", max_tokens=10)
    assert failed.kind == "NumericFaultError", stage
    assert f"reading token {max(nan_at, 5)}" in failed.what
    assert bench.opened is not None
    bench.opened.model.behaviour.clear()
    assert bench.ask("abcdef", max_tokens=10).usage.generated == 10


def test_the_first_bad_intermediate_is_named(toy_file: Any) -> None:
    bench = Bench(toy_file(nan_at=0))
    what = bench.ask("abcdef").what
    assert "in layer 0, output of the attention (l0.attn_out)" in what


@pytest.mark.parametrize("fault_at", [2, 20])
def test_an_op_that_refuses_a_value_is_placed_after_the_last_good_one(
    toy_file: Any, fault_at: int
) -> None:
    bench = Bench(toy_file(fault_at=fault_at))
    failed = bench.ask("x" * 30)  # only the last 8 are read again, so 20 does not come back
    assert failed.kind == "NumericFaultError"
    assert "after layer 0, output of the attention (l0.attn_out)" in failed.what
    assert failed.why.startswith("route failed")


def test_a_bad_value_from_a_file_that_changed_is_blamed_on_the_change(
    toy_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localglm.engine.file_watch._CHECK_SECONDS", 1000.0)
    path = toy_file(nan_at=2)
    bench = Bench(path)
    assert bench.ask("abc").kind == "NumericFaultError"
    bench.watch = lambda event, _control: path.write_text("{} ")
    failed = bench.ask("abcdef")
    assert failed.kind == "ModelFileError"
    assert str(path) in failed.what


@pytest.mark.parametrize(
    ("fault", "kind"), [("memory_at", "MemoryShortError"), ("raise_at", "RequestError")]
)
def test_a_fault_inside_a_pass_ends_one_request(
    toy_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, kind: str
) -> None:
    monkeypatch.setattr("localglm.paths.log_folder", lambda: tmp_path / "log")
    bench = Bench(toy_file(**{fault: 4}))
    failed = bench.ask("abcdef")
    assert failed.kind == kind
    kept = tmp_path / "log" / "engine-fault.log"
    assert kept.exists() == (fault == "raise_at") == (str(kept) in failed.try_)
    assert not kept.exists() or "a fault of the toy" in kept.read_text()
    assert bench.opened is not None
    bench.opened.model.behaviour.clear()
    assert bench.ask("abcdef", max_tokens=3).reason == "length"


def test_a_truncated_file_is_named_before_it_is_read(toy_file: Any) -> None:
    path = toy_file()
    bench = Bench(path)
    path.write_text("")
    assert bench.opened is not None
    bench.opened.watch.looked = 0.0
    failed = bench.ask("abc")
    assert failed.kind == "ModelFileError"
    assert "was truncated" in failed.what
