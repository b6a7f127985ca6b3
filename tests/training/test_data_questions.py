"""The held-out questions and how answers to them are judged."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
import pytest

from benchmarks.demo_quality import (
    Report,
    ask,
    judge,
    log_likelihood,
    mistakes,
    perplexity,
    table,
)
from benchmarks.demo_questions import Question, perplexity_set, questions
from localglm.engine import protocol as p
from localglm.engine.client import Engine
from tests.gguf_files import I32, STRING, U32, Tiny, Value, write_model
from training.data.conversation import Conversation, Turn
from training.data.encode import Writer
from training.data.vocabulary import FIRST_MARKER, SIZE, Encoder, entries


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return questions()


def done(reason: str = "end", thinking: int = 0) -> p.Done:
    usage = p.Usage(prompt=9, cached=0, read=9, generated=5, thinking=thinking)
    return p.Done(
        request=1, reason=reason, usage=usage, timings=p.Timings(prefill_s=1, decode_s=1), seed=1
    )


def first(asked: list[Question], group: str, effort: str) -> Question:
    return next(q for q in asked if (q.group, q.effort) == (group, effort))


def test_there_are_a_thousand_different_questions_with_thinking_off(asked):
    prompts = Counter((q.turns, q.tools) for q in asked if q.effort == "off")
    assert len(prompts) >= 1000
    assert set(prompts.values()) == {1}


def test_the_three_levels_are_asked_the_same_questions(asked):
    for group in ("arithmetic", "copying", "about"):
        by_level = [
            [q.turns[-1].content for q in asked if (q.group, q.effort) == (group, level)]
            for level in ("low", "high", "max")
        ]
        assert by_level[0] == by_level[1] == by_level[2]
        assert len(by_level[0]) >= 12


def test_the_list_is_always_the_same_and_can_be_shortened(asked):
    short = questions(per_group=2)
    assert questions(per_group=2) == short
    assert set(Counter((q.group, q.effort) for q in short).values()) == {2}
    assert all(question in asked for question in short[:20])


def test_long_lookups_have_their_length_and_fit_the_context(asked):
    writer = Writer(Encoder())
    limits = {"lookup 1k": (700, 1300), "lookup 8k": (6000, 9000), "lookup 16k": (11_000, 16_300)}
    for group, (low, high) in limits.items():
        sizes = []
        for question in [q for q in asked if q.group == group][:12]:
            turns = (*question.turns, Turn("assistant", question.answer))
            made = Conversation("lookup", "any", question.effort, turns, ())
            sizes.append(len(writer.whole(made).ids))
        assert max(sizes) <= high
        assert sorted(sizes)[len(sizes) // 2] >= low


def test_a_right_answer_counts_and_a_wrong_digit_does_not(asked):
    question = first(asked, "lookup 1k", "off")
    assert judge(question, question.answer, [], done()).is_exact
    assert judge(question, f" {question.answer}\n", [], done()).is_exact
    assert not judge(question, question.answer[:-2] + "x.", [], done()).is_exact
    assert not judge(question, question.answer + " Yes.", [], done()).is_exact


def test_thinking_with_the_level_off_is_bad_form_and_none_above_too(asked):
    off, low = first(asked, "about", "off"), first(asked, "about", "low")
    assert judge(off, off.answer, [], done()).is_well_formed
    assert not judge(off, off.answer, [], done(thinking=3)).is_well_formed
    assert judge(low, low.answer, [], done(thinking=3)).is_well_formed
    assert not judge(low, low.answer, [], done()).is_well_formed
    assert not judge(off, off.answer, [], done("length")).is_well_formed
    assert not judge(off, "<think>" + off.answer, [], done()).is_well_formed


def test_a_tool_call_is_compared_by_name_and_arguments(asked):
    question = first(asked, "tool call", "off")
    name, arguments = question.calls[0].name, dict(question.calls[0].arguments)
    ended = done("tool_calls")
    right = judge(question, "", [(name, arguments)], ended)
    assert right.is_exact
    assert right.is_well_formed
    other = judge(question, "", [(name, {**arguments, "extra": 1})], ended)
    assert other.is_well_formed
    assert not other.is_exact
    assert not judge(question, "", [("no_such_tool", arguments)], ended).is_well_formed
    assert not judge(question, "<tool_call>" + name, [], done()).is_well_formed


def test_the_likelihood_of_even_logits_is_that_of_chance():
    logits, targets = np.zeros((7, 50), np.float32), np.arange(7)
    assert log_likelihood(logits, targets) == pytest.approx(-7 * log(50))
    logits[np.arange(7), targets] = 3.0
    assert log_likelihood(logits, targets) > -7 * log(50) + 7


def test_the_perplexity_set_is_fixed_and_covers_what_is_written():
    made = perplexity_set(2)
    assert [one.ids for one in made] == [one.ids for one in perplexity_set(2)]
    assert all(any(one.taught) for one in made)


def test_a_model_file_is_asked_and_measured_through_the_engine(tmp_path, monkeypatch):
    def add_vocabulary(content) -> None:
        kinds = {str: STRING, int: U32}
        for key, value in entries().metadata().items():
            kind = kinds.get(type(value))
            if isinstance(value, list):
                kind = STRING if isinstance(value[0], str) else I32
            content.metadata[key] = Value(kind, value)

    spec = Tiny(layers="KM", vocabulary=SIZE, tokenizer=False)
    path = write_model(tmp_path, spec, edit=add_vocabulary)
    short = [q for q in questions(1) if q.group in {"about", "tool call"} and q.effort == "off"]
    monkeypatch.setattr("benchmarks.demo_quality._LONGEST_ANSWER", 6)
    with Engine() as engine:
        engine.open_model(p.OpenModel(request=0, path=str(path), context=1024))
        outcomes = [ask(engine, question) for question in short]
    assert [outcome.group for outcome in outcomes] == ["about", "tool call"]
    assert not any(outcome.is_exact for outcome in outcomes)
    few = perplexity_set(1)[:2]
    monkeypatch.setattr("benchmarks.demo_quality.perplexity_set", lambda _: few)
    value = perplexity(path, "cpu", 1)
    # A random model knows nothing: it is near the number of tokens, whatever the exact logits.
    assert 0.3 * FIRST_MARKER < value < 30 * SIZE
    report = Report("tiny", "cpu", outcomes, value, 1.0)
    assert "| about, off | 0.0 % (0/1) |" in table([report])
    assert "(x 1.0000)" in table([report])
    assert "tool call, off: expected" in mistakes(report, 1)
