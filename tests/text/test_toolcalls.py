"""Tool calls: values byte for byte, any cut alike, stray tags, and calls that cannot be used."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.text.markers import Piece
from localglm.text.template import ChatTemplate
from localglm.text.thinking import Effort
from localglm.text.toolcalls import BrokenCall, ToolCall, ToolCallParser, join_text, parse_calls

TAGS = ["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"]


def call_text(name, arguments, gap=""):
    inner = "".join(
        f"{gap}<arg_key>{key}</arg_key>{gap}<arg_value>{value}</arg_value>"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}{inner}{gap}</tool_call>"


def streamed(parts, tools=()):
    parser = ToolCallParser(tools)
    events = [event for part in parts for event in parser.push(part)]
    return join_text([*events, *parser.finish()])


SAMPLES = [
    "before " + call_text("get_weather", {"city": "北京", "days": "3"}, "\n") + " after",
    call_text("f", {}) + call_text("g", {"a": ""}),
    call_text("write", {"text": 'line\n\\n "q" <b> </tool_cal <arg_key>x</arg_key>\t '}),
    "no call, 1 < 2 <tool",
    "<tool_call>f<arg_key>a</arg_key><arg_value>unfinished </arg_val",
    "<tool_call><tool_call>f</arg_key><arg_key><arg_key>a</arg_value></arg_key><arg_value>1</arg_value></arg_value></tool_call></tool_call>",
    "<tool_call>f<arg_key>a</arg_key></tool_call>x",
    "<tool_call>f<tool_call>g</tool_call>",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_every_split_point_gives_the_same_result(text):
    whole = parse_calls(text)
    for cut in range(len(text) + 1):
        assert streamed([text[:cut], text[cut:]]) == whole
    assert streamed(list(text)) == whole


@settings(max_examples=300, deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from([*TAGS, "f", "a b", "\n", "<", "</arg_", "key>", "1"]), max_size=16
    ),
    data=st.data(),
)
def test_random_cuts_of_random_tags_give_the_same_result(pieces, data):
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    events = parse_calls(text)
    assert streamed(parts) == events
    for event in events:
        if isinstance(event, ToolCall):
            assert event.name
            assert not any(tag in part for tag in TAGS for part in (event.name, *event.arguments))


# A closing tag at the very end of a value cannot be told from a stray one.
VALUES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
        st.sampled_from(
            ["<arg_value>", "</arg_value>x", "</arg_value>\n</arg_value>x", "</arg_key>"]
        ),
    ),
    max_size=3,
).map("".join)
NAMES = st.text(st.sampled_from("abcxyz_09."), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(
    name=NAMES,
    arguments=st.dictionaries(NAMES, VALUES, max_size=4),
    gap=st.sampled_from(["", "\n"]),
)
def test_values_come_back_byte_for_byte(name, arguments, gap):
    (call,) = parse_calls(call_text(name, arguments, gap))
    assert call == ToolCall(name, arguments, arguments)


@pytest.mark.parametrize(
    "value", ["a\\nb", "a\nb", " x ", "\n", "", "</arg_value", "</tool_call>", "1"]
)
def test_escapes_and_white_space_in_values_are_untouched(value):
    (call,) = parse_calls(call_text("f", {"k": value}))
    assert call.arguments == {"k": value}


def test_a_value_may_hold_its_own_closing_tag():
    value = "print('</arg_value>') # end"
    (call,) = parse_calls(call_text("f", {"k": value, "n": "1"}))
    assert call.arguments == {"k": value, "n": "1"}


def test_text_around_calls_keeps_its_place():
    first, call, second, other, third = parse_calls(SAMPLES[0] + call_text("g", {}) + "end")
    assert (first, second, third) == ("before ", " after", "end")
    assert call.arguments == {"city": "北京", "days": "3"}
    assert other.name == "g"


def tool(properties, *, wrapped=True):
    function = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    return {"type": "function", "function": function} if wrapped else function


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "string"}, "12", "12"),
        ({"type": "string"}, '"12"', '"12"'),
        ({"type": "integer"}, "12", 12),
        ({"type": "integer"}, "12.0", 12.0),
        ({"type": "integer"}, "twelve", "twelve"),
        ({"type": "number"}, " 1.5\n", 1.5),
        ({"type": "number"}, "NaN", "NaN"),
        ({"type": "number"}, "1e999", "1e999"),
        ({"type": "integer"}, "9" * 400, int("9" * 400)),
        ({"type": "boolean"}, "true", True),
        ({"type": "integer"}, "true", "true"),
        ({"type": "array"}, '[1, "a"]', [1, "a"]),
        ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}),
        ({"type": "array"}, "[" * 100_000, "[" * 100_000),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "nullify", "nullify"),
        ({"type": ["string", "integer"]}, "7", 7),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "7", 7),
        ({"enum": ["a", "b"]}, "a", "a"),
        ({"enum": [1, 2]}, "2", 2),
        ({}, "12", "12"),
        (None, "12", "12"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrapped", [True, False])
def test_the_schema_decides_between_text_and_json(schema, written, value, wrapped):
    tools = [tool({"k": schema}, wrapped=wrapped)]
    (call,) = parse_calls(call_text("f", {"k": written}), tools)
    assert call.arguments == {"k": value}
    assert type(call.arguments["k"]) is type(value)
    assert call.written == {"k": written}
    (unknown,) = parse_calls(call_text("g", {"k": written}), tools)
    assert unknown.arguments == {"k": written}


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>f</arg_value><arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key><arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key>a</arg_key></arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key>a<arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key>a</arg_value></arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key>a</b></arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></arg_value></tool_call>",
        "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></arg_key></tool_call>",
        "<tool_call><tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
        "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call></tool_call>",
    ],
)
def test_one_stray_tag_changes_nothing(text):
    assert parse_calls(text) == [ToolCall("f", {"a": "1"}, {"a": "1"})]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<tool_call>f", "ended inside"),
        ("<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>", "ended inside"),
        ("<tool_call>f<arg_key>a</arg_key><arg_value>1</tool_call>", "ended inside"),
        ("<tool_call></tool_call>", "no function"),
        ("<tool_call>f<arg_key>a</arg_key></tool_call>", "no value"),
        ("<tool_call>f<arg_key>a</arg_key><arg_key>b<arg_value></arg_value></tool_call>", "value"),
        ("<tool_call>f<arg_key></arg_key><arg_value>1</arg_value></tool_call>", "no argument name"),
        (call_text("f", {"a<b": "1"}), "no argument name"),
        (call_text("f", {"a": "1"})[:-12] + "junk</tool_call>", "between the arguments"),
        ("<tool_call>f" + call_text("", {"a": "1"})[11:-12] * 2 + "</tool_call>", "twice"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_used_is_reported_with_its_text(text, why):
    (broken,) = parse_calls(text)
    assert isinstance(broken, BrokenCall)
    assert why in broken.why
    assert broken.text == text


def test_the_next_call_works_after_a_broken_one():
    broken, call = parse_calls("<tool_call>f<tool_call>g</tool_call>")
    assert (broken.name, broken.text) == ("f", "<tool_call>f")
    assert call == ToolCall("g", {}, {})


def test_text_is_shown_at_once_and_calls_when_they_end():
    parser = ToolCallParser()
    assert parser.push("hello <tool") == ["hello "]
    assert not parser.is_inside
    assert parser.push("_call>f") == []
    assert parser.is_inside
    assert parser.push("</tool_call>x") == [ToolCall("f", {}, {}), "x"]


def test_a_piece_that_only_spells_a_tag_stays_text():
    spelled = [Piece("<tool_call>", is_marker=False), Piece("f", is_marker=False)]
    assert streamed(spelled) == ["<tool_call>f"]
    meant = [
        Piece("<tool_call>", is_marker=True),
        *spelled[1:],
        Piece("</tool_call>", is_marker=True),
    ]
    assert streamed(meant) == [ToolCall("f", {}, {})]
    value = [
        Piece(tag, is_marker=True)
        for tag in ("<tool_call>", "<arg_key>", "</arg_key>", "<arg_value>")
    ]
    value[1:1] = [Piece("f", is_marker=False)]
    value[3:3] = [Piece("k", is_marker=False)]
    value += [Piece("</arg_value></tool_call>", is_marker=False)]
    value += [Piece("</arg_value>", is_marker=True), Piece("</tool_call>", is_marker=True)]
    (call,) = streamed(value)
    assert call.arguments == {"k": "</arg_value></tool_call>"}


def test_a_call_rendered_by_the_built_in_template_is_read_back():
    arguments = {"s": " 12\n", "n": 12, "l": [1, {"a": None}], "b": False}
    call = {"function": {"name": "f", "arguments": json.dumps(arguments)}}
    talk = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    with ChatTemplate(None) as made:
        text = made.render(talk, effort=Effort.LOW)
    kinds = {"s": "string", "n": "integer", "l": "array", "b": "boolean"}
    schema = {key: {"type": kind} for key, kind in kinds.items()}
    events = parse_calls(text.split("</think>")[1].split("<|assistant|>")[0], [tool(schema)])
    assert [event.arguments for event in events if isinstance(event, ToolCall)] == [arguments]
