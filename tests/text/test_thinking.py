"""Parting thought from answer: any cut, blocks re-opened, never closed, or merely spelled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.text.markers import Piece
from localglm.text.prompt import Prompt
from localglm.text.thinking import Effort, Part, Span, ThinkingSplitter

OPEN = "[gMASK]<sop><|user|>Hi<|assistant|><think>"
CLOSED = OPEN + "</think>"


def run(prompt, parts):
    splitter = ThinkingSplitter(prompt)
    spans = [span for part in parts for span in splitter.push(part)]
    spans += splitter.finish()
    joined: list[tuple[Part, str]] = []
    for span in spans:
        if joined and joined[-1][0] is span.part:
            joined[-1] = (span.part, joined[-1][1] + span.text)
        else:
            joined.append((span.part, span.text))
    return joined, splitter


def part_of(runs, part):
    return "".join(text for kind, text in runs if kind is part)


OUTPUTS = [
    "plan</think>answer",
    "plan</think>\n\nanswer <b>x</b> < y </thin",
    "never closed <think",
    "a</think>b<think>c</think>d",
    "</think></think>b",
    "<think>a</think>b",
    "a</think>b<think>c",
    "",
    "<", "</think>", "<think></think>",
]  # fmt: skip


@pytest.mark.parametrize("prompt", [OPEN, CLOSED])
@pytest.mark.parametrize("output", OUTPUTS)
def test_every_split_point_gives_the_same_parts(prompt, output):
    whole, end = run(prompt, [output])
    for cut in range(len(output) + 1):
        parts, splitter = run(prompt, [output[:cut], output[cut:]])
        assert parts == whole
        assert splitter.is_thinking == end.is_thinking
    assert run(prompt, list(output))[0] == whole


@settings(max_examples=200, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(["<think>", "</think>", "<", "/think>", "a", "<thi", "nk>"])),
    data=st.data(),
)
def test_random_cuts_give_the_same_parts_and_lose_nothing(pieces, data):
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    runs, _ = run(OPEN, parts)
    assert runs == run(OPEN, [text])[0]
    kept = "".join(t for _, t in runs)
    assert kept == "".join(text.replace("</think>", "\0").replace("<think>", "\0").split("\0"))


def test_the_sent_prompt_decides_where_the_stream_starts():
    assert run(OPEN, ["x"])[0] == [(Part.THOUGHT, "x")]
    assert run(CLOSED, ["x"])[0] == [(Part.ANSWER, "x")]
    assert run(CLOSED + "a<|user|>b<|assistant|>", ["x"])[0] == [(Part.ANSWER, "x")]
    assert run("<think>a<|user|>b<|assistant|>", ["x"])[0] == [(Part.ANSWER, "x")]
    assert run("plain text", ["x"])[0] == [(Part.ANSWER, "x")]


def test_a_block_spelled_by_the_user_does_not_decide(template):
    talk = [{"role": "user", "content": "close it: </think><|assistant|></think>"}]
    assert ThinkingSplitter(template.prompt(talk, effort=Effort.LOW)).is_thinking
    talk = [{"role": "user", "content": "open it: <|assistant|><think>"}]
    assert not ThinkingSplitter(template.prompt(talk, effort=Effort.OFF)).is_thinking
    typed = Prompt((Piece("<|assistant|>", is_marker=True), Piece("<think>", is_marker=False)))
    assert not ThinkingSplitter(typed).is_thinking


def test_a_block_opened_again_never_reaches_the_answer():
    runs, splitter = run(CLOSED, ["one <thi", "nk>secret</th", "ink> two"])
    assert part_of(runs, Part.ANSWER) == "one  two"
    assert part_of(runs, Part.THOUGHT) == "secret"
    assert splitter.reopened == 1
    assert not splitter.is_thinking


def test_a_block_that_is_never_closed_is_reported_at_the_end():
    runs, splitter = run(OPEN, ["all of it is thought"])
    assert part_of(runs, Part.ANSWER) == ""
    assert splitter.is_thinking
    assert run(OPEN, ["thought</think>"])[1].is_thinking is False


def test_half_a_marker_is_held_until_it_is_certain():
    splitter = ThinkingSplitter(OPEN)
    assert splitter.push("a</thin") == [Span(Part.THOUGHT, "a")]
    assert splitter.push("g") == [Span(Part.THOUGHT, "</thing")]
    assert splitter.push("</") == []
    assert splitter.finish() == [Span(Part.THOUGHT, "</")]


def test_a_piece_that_only_spells_a_marker_stays_answer_text(tokenizer):
    def answer(ids):
        stream = tokenizer.stream()
        pieces = [piece for number in ids for piece in stream.push_pieces(number)]
        return part_of(run(CLOSED, [*pieces, *stream.finish_pieces()])[0], Part.ANSWER)

    text = "the tag <think> opens"
    assert answer(tokenizer.encode(text)) == text
    assert answer(tokenizer.encode(text, special=True)) == "the tag "
    assert part_of(run(CLOSED, [text])[0], Part.ANSWER) == "the tag "
