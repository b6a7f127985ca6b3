"""The text side on a real vocabulary: modes, tool calls, kept ids, random prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localglm.engine import protocol as p
from localglm.engine.dialogue import Dialogue
from localglm.engine.output import Output
from localglm.errors import RequestError, SettingsError, UsageError
from localglm.gguf import open_model
from localglm.text.template import ChatTemplate
from localglm.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OFF = p.ChatPrompt((p.Message(role="user", content="Hi"),), "off")
LIMIT = 4096
HIGH = p.ChatPrompt((p.Message(role="user", content="Hi"),), "high")


@pytest.fixture(scope="module")
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    folder: Path = request.path.parent.parent / "oracle"
    with open_model(folder / "tiny-q8_0.gguf") as file:
        return Tokenizer.from_metadata(file.metadata)


@pytest.fixture(scope="module")
def dialogue(tokenizer: Tokenizer) -> Iterator[Dialogue]:
    with ChatTemplate(None) as template:
        yield Dialogue(tokenizer, template)


def read(
    dialogue: Dialogue,
    tokenizer: Tokenizer,
    prompt: p.Prompt,
    text: str,
    stops: tuple[str, ...] = (),
) -> list[tuple[str, str]]:
    """Feed ``text`` as generated ids; return joined (kind, text) runs."""
    assert not isinstance(prompt, p.Continuation)
    output = Output(1, dialogue.output(dialogue.prepare(prompt, (), LIMIT)), stops)
    events = [e for i in tokenizer.encode(text, special=True) for e in output.push(i)]
    runs: list[tuple[str, str]] = []
    for event in [*events, *output.finish()]:
        new = ("call", event.name) if isinstance(event, p.ToolCall) else (event.kind, event.text)
        if runs and runs[-1][0] == new[0] != "call":
            runs[-1] = (new[0], runs[-1][1] + new[1])
        else:
            runs.append(new)
    return runs


def test_the_mode_follows_the_prompt_that_was_sent(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    assert read(dialogue, tokenizer, HIGH, "hm</think>yes") == [
        ("thinking", "hm"),
        ("answer", "yes"),
    ]
    assert read(dialogue, tokenizer, OFF, "yes") == [("answer", "yes")]
    assert read(dialogue, tokenizer, p.TextPrompt("x"), "yes") == [("answer", "yes")]


def test_a_block_that_opens_again_is_folded_and_an_answer_follows(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    runs = read(dialogue, tokenizer, OFF, "<think>again</think>yes")
    assert runs == [("thinking", "again"), ("answer", "yes")]


def test_the_level_off_names_the_effort_of_the_setting(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    low = tokenizer.decode(dialogue.prepare(OFF, (), LIMIT).ids)
    asked = p.ChatPrompt(OFF.messages, "off", "max")
    most = tokenizer.decode(dialogue.prepare(asked, (), LIMIT).ids)
    assert low.endswith("<|assistant|><think></think>")
    assert "Effort: Low" in low
    assert "Effort: Max" in most
    with pytest.raises(SettingsError, match="huge"):
        dialogue.prepare(p.ChatPrompt(OFF.messages, "huge"), (), LIMIT)


@pytest.mark.parametrize("role", ["<|user|>", "<|assistant|>", "<|system|>", "<|observation|>"])
def test_every_role_marker_ends_an_answer(
    dialogue: Dialogue, tokenizer: Tokenizer, role: str
) -> None:
    assert tokenizer.marker_id(role) in dialogue.end_of_turn
    assert tokenizer.marker_id("<think>") not in dialogue.end_of_turn


def test_a_tool_call_is_an_event_and_a_broken_one_is_text(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    call = "<tool_call>look<arg_key>at</arg_key><arg_value>it</arg_value></tool_call>"
    offered = p.ChatPrompt(OFF.messages, "off", tools=({"name": "look", "parameters": {}},))
    assert read(dialogue, tokenizer, offered, "so " + call) == [("answer", "so "), ("call", "look")]
    cut = "<tool_call>look<arg_key>at"
    assert read(dialogue, tokenizer, offered, cut) == [("answer", cut)]


def test_a_tool_call_without_tools_is_text(dialogue: Dialogue, tokenizer: Tokenizer) -> None:
    call = "<tool_call>look<arg_key>at</arg_key><arg_value>it</arg_value></tool_call>"
    assert read(dialogue, tokenizer, OFF, "so " + call) == [("answer", "so " + call)]


def test_stop_strings_work_across_tokens_of_the_answer_only(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    runs = read(dialogue, tokenizer, HIGH, "END</think>one END two", ("END",))
    assert runs == [("thinking", "END"), ("answer", "one ")]


def test_ids_that_were_really_written_are_kept_although_text_would_encode_otherwise(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    start = dialogue.prepare(OFF, (), LIMIT).ids
    odd = [tokenizer.encode(letter)[0] for letter in "the model"]
    assert odd != tokenizer.encode("the model")
    known = [*start, *odd]
    turns = (
        *OFF.messages,
        p.Message(role="assistant", content="the model"),
        p.Message(role="user", content="And?"),
    )
    places = [(dialogue.marked(known), tuple(known))]
    kept = dialogue.prepare(p.ChatPrompt(turns, "off"), places, LIMIT)
    fresh = dialogue.prepare(p.ChatPrompt(turns, "off"), (), LIMIT)
    assert kept.ids[: len(known)] == known
    assert fresh.ids[: len(known)] != known
    assert tokenizer.decode(kept.ids) == tokenizer.decode(fresh.ids)


def test_typed_markers_never_stand_for_markers_that_were_written(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    start = dialogue.prepare(OFF, (), LIMIT).ids
    marker = tokenizer.marker_id("<|user|>")
    assert marker is not None
    known = [*start, marker]
    turns = (
        *OFF.messages,
        p.Message(role="assistant", content="<|user|>"),
        p.Message(role="user", content="And?"),
    )
    prepared = dialogue.prepare(
        p.ChatPrompt(turns, "off"), [(dialogue.marked(known), tuple(known))], LIMIT
    )
    assert prepared.ids[: len(known)] != known
    assert prepared.ids[: len(start)] == start


@pytest.mark.parametrize("kind", ["chat", "text", "random"])
def test_a_prompt_far_beyond_the_context_is_refused_before_it_is_encoded_as_a_whole(
    dialogue: Dialogue, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    encoded: list[int] = []
    encode = tokenizer.encode

    def counted(text: str, *, special: bool = False) -> list[int]:
        encoded.append(len(text))
        return encode(text, special=special)

    def rendered(*_arguments: object, **_more: object) -> None:
        raise AssertionError

    monkeypatch.setattr(tokenizer, "encode", counted)
    monkeypatch.setattr(ChatTemplate, "prompt", rendered)
    text = "a long story " * 100_000
    prompts: dict[str, p.ChatPrompt | p.TextPrompt | p.RandomPrompt] = {
        "chat": p.ChatPrompt((p.Message(role="user", content=text),), "off"),
        "text": p.TextPrompt(text),
        "random": p.RandomPrompt(LIMIT + 1, 3),
    }
    with pytest.raises(RequestError, match="the context holds 4096"):
        dialogue.prepare(prompts[kind], (), LIMIT)
    assert sum(encoded) < 0.1 * len(text)


def test_a_prompt_that_may_just_fit_is_counted_exactly(dialogue: Dialogue) -> None:
    text = " a" * LIMIT
    assert LIMIT / 4 < len(dialogue.prepare(p.TextPrompt(text), (), LIMIT).ids) <= 2 * LIMIT
    with pytest.raises(RequestError, match="more than 300 tokens"):
        dialogue.prepare(p.TextPrompt(text), (), 300)


def test_random_prompts_are_ordinary_tokens_and_repeat_with_the_seed(
    dialogue: Dialogue, tokenizer: Tokenizer
) -> None:
    ids = dialogue.prepare(p.RandomPrompt(500, 3), (), LIMIT).ids
    special = {tokenizer.marker_id(text) for text in tokenizer.markers.texts}
    assert len(ids) == 500
    assert not special & set(ids)
    assert ids == dialogue.prepare(p.RandomPrompt(500, 3), (), LIMIT).ids
    assert ids != dialogue.prepare(p.RandomPrompt(500, 4), (), LIMIT).ids
    with pytest.raises(UsageError, match="0 random tokens"):
        dialogue.prepare(p.RandomPrompt(0, 3), (), LIMIT)
