"""Chat templates: the oracle's texts, the four levels, tools, history, and refusals."""

from __future__ import annotations

import pytest

from localglm.errors import ModelFileError, RequestError, SettingsError
from localglm.text.builtin import BUILT_IN_TEMPLATE
from localglm.text.template import ChatTemplate
from localglm.text.thinking import Effort

HI = [{"role": "user", "content": "Hi"}]
START = "[gMASK]<sop><|system|>Reasoning Effort: "
TOOL = {"type": "function", "function": {"name": "f", "description": "Zürich <b>"}}
KEY = "tokenizer.chat_template"


@pytest.fixture(scope="module")
def built_in():
    with ChatTemplate(None) as opened:
        yield opened


def test_every_oracle_conversation_renders_the_same_text(template, built_in, cases):
    levels = {"low": Effort.LOW, "high": Effort.HIGH}
    for case in cases["chat"]:
        given = case["input"]
        effort = levels.get(given.get("reasoning_effort"), Effort.MAX)
        for one in (template, built_in):
            assert one.render(given["messages"], effort=effort) == case["text"]


def test_every_level_gives_its_exact_prompt(template, built_in):
    for one in (template, built_in):
        for effort, line in ((Effort.LOW, "Low"), (Effort.HIGH, "High"), (Effort.MAX, "Max")):
            text = one.render(HI, effort=effort)
            assert text == f"{START}{line}<|user|>Hi<|assistant|><think>"
        text = one.render(HI, effort=Effort.OFF)
        assert text == f"{START}Low<|user|>Hi<|assistant|><think></think>"


def test_off_keeps_the_effort_line_it_is_told(template):
    prompt = template.prompt(HI, effort=Effort.OFF, effort_when_off=Effort.MAX)
    assert prompt.text == f"{START}Max<|user|>Hi<|assistant|><think></think>"
    assert not prompt.is_thinking
    assert template.prompt(HI, effort=Effort.LOW).is_thinking
    with pytest.raises(RequestError, match="off"):
        template.prompt(HI, effort=Effort.OFF, effort_when_off=Effort.OFF)


def test_off_leaves_a_prompt_without_an_open_block_alone():
    for source, ending in (
        ("<|assistant|>", ""),
        ("<think>\n", "</think>"),
        ("<think></think>", ""),
    ):
        with ChatTemplate(source) as made:
            assert made.render(HI, effort=Effort.OFF) == source.rstrip("\n") + ending
    with ChatTemplate("<|assistant|>{{ '<think>\n' }}") as made:
        assert made.render(HI, effort=Effort.OFF) == "<|assistant|><think>\n</think>"


def test_an_unknown_level_is_refused_naming_the_four():
    assert Effort.parse(" High ") is Effort.HIGH
    for text in ("none", "", "medium", "true"):
        with pytest.raises(SettingsError) as caught:
            Effort.parse(text)
        assert "off, low, high, max" in caught.value.why


def test_a_template_that_wants_capital_levels_gets_them():
    source = "{{ reasoning_effort if reasoning_effort in ['Low', 'High'] else 'Max' }}"
    with ChatTemplate(source) as made:
        assert [made.render(HI, effort=e) for e in Effort] == ["Low", "Low", "High", "Max"]
        assert made.notes == ()


def test_a_template_without_levels_is_noted():
    with ChatTemplate("{{ messages[0].content }}") as made:
        assert made.render(HI, effort=Effort.LOW) == "Hi"
        assert "levels" in made.notes[0]


def test_a_file_without_a_template_gets_the_built_in_one_with_a_note(metadata, template):
    bare = {k: v for k, v in metadata.items() if k != KEY}
    for given in (bare, metadata | {KEY: ""}):
        with ChatTemplate.from_metadata(given) as made:
            assert made.is_built_in
            assert "built-in" in made.notes[0]
            assert made.render(HI, effort=Effort.LOW) == template.render(HI, effort=Effort.LOW)
    assert not template.is_built_in
    assert template.notes == ()


def test_a_template_that_does_not_parse_is_an_error_and_no_other_one_is_used(metadata):
    with pytest.raises(ModelFileError) as caught:
        ChatTemplate.from_metadata(metadata | {KEY: "a\n{% if %}"})
    assert "does not parse (line 2" in caught.value.why
    with pytest.raises(ModelFileError, match="template"):
        ChatTemplate.from_metadata(metadata | {KEY: 3})
    with pytest.raises(ModelFileError, match="template"):
        ChatTemplate("a" * 300_000)


def test_a_template_can_refuse_and_its_words_are_made_harmless():
    source = "{{ raise_exception('no\x1b[2J tools\nhere') }}"
    with ChatTemplate(source) as made, pytest.raises(RequestError) as caught:
        made.render(HI, effort=Effort.LOW)
    assert caught.value.why == "no [2J tools here"


def test_the_environment_is_the_one_chat_templates_are_written_for():
    source = (
        "  {% for m in [1, 2, 3] %}\n"
        "{% if m == 2 %}{% continue %}{% endif %}{{ m }}\n"
        "{% endfor %}{{ strftime_now('%Y') | length }}"
        "{{ {'a': 'é<b>'} | tojson }}{% generation %}g{% endgeneration %}"
    )
    with ChatTemplate(source) as made:
        assert made.render(HI, effort=Effort.LOW) == '1\n3\n4{"a": "é<b>"}g'


def test_tools_stand_in_a_system_turn_before_the_conversation(built_in):
    text = built_in.render(HI, effort=Effort.LOW, tools=[TOOL])
    before, after = text.split("<|user|>")
    assert before.startswith(f"{START}Low<|system|>")
    assert '{"type": "function", "function": {"name": "f", "description": "Zürich <b>"}}' in before
    assert after == "Hi<|assistant|><think>"
    assert "<tools>" not in built_in.render(HI, effort=Effort.LOW)


def test_reasoning_calls_and_results_come_back_in_tool_turns(built_in):
    call = {"function": {"name": "f", "arguments": '{"a": "x\\n", "n": [1, true]}'}}
    talk = [
        *HI,
        {"role": "assistant", "content": None, "reasoning_content": "why", "tool_calls": [call]},
        {"role": "tool", "content": "r1"},
        {"role": "tool", "content": "r2"},
    ]
    text = built_in.render(talk, effort=Effort.LOW)
    assert text.endswith(
        "<|user|>Hi<|assistant|><think>why</think><tool_call>f"
        "<arg_key>a</arg_key><arg_value>x\n</arg_value>"
        "<arg_key>n</arg_key><arg_value>[1, true]</arg_value></tool_call>"
        "<|observation|><tool_response>r1</tool_response><tool_response>r2</tool_response>"
        "<|assistant|><think>"
    )


def test_the_template_decides_whether_past_reasoning_stays():
    talk = [{"role": "assistant", "content": "b", "reasoning_content": "a"}, *HI]
    strip = "{% for m in messages %}{{ m.content }}{% endfor %}"
    keep = "{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}{% endfor %}"
    for source, wanted in ((strip, "bHi"), (keep, "abHi")):
        with ChatTemplate(source) as made:
            assert made.render(talk, effort=Effort.LOW) == wanted


def test_text_parts_are_joined_and_other_parts_refused(template):
    parts = [{"type": "text", "text": "a"}, "b"]
    text = template.render([{"role": "user", "content": parts}], effort=Effort.LOW)
    assert "<|user|>ab<|assistant|>" in text
    with pytest.raises(RequestError, match="message 1"):
        template.render([{"role": "user", "content": [{"type": "image"}]}], effort=Effort.LOW)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "boss", "content": "x"},
        {"content": "x"},
        {"role": "user", "content": 3},
        {"role": "user", "content": "x", "extra": b"bytes"},
        {"role": "assistant", "content": "", "tool_calls": "f"},
        {"role": "assistant", "content": "", "tool_calls": ["f"]},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": "{"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "f", "arguments": "[1]"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"arguments": {}}]},
    ],
)
def test_a_message_that_cannot_be_rendered_is_refused(template, message):
    with pytest.raises(RequestError):
        template.render([message], effort=Effort.LOW)
    assert template.render(HI, effort=Effort.LOW)


def test_an_empty_conversation_is_refused(template):
    with pytest.raises(RequestError, match="empty"):
        template.render([], effort=Effort.LOW)


def test_a_long_conversation_renders_within_its_larger_limits(template):
    content = "a🙂b " * 500_000
    text = template.render([{"role": "user", "content": content}], effort=Effort.LOW)
    assert len(text) > len(content) - 2


def test_the_built_in_text_uses_every_message_role():
    assert all(f"'{role}'" in BUILT_IN_TEMPLATE for role in ("system", "user", "assistant", "tool"))
