"""Only markers that the template writes become special; the text is otherwise the plain render."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from localglm.errors import RequestError
from localglm.text.markers import GLM_MARKERS, Piece
from localglm.text.prompt import Prompt, choose_wedge
from localglm.text.template import ChatTemplate
from localglm.text.thinking import Effort

PARTS = ["<|us", "er|>", "<", ">", "[gM", "ASK]", "</thi", "nk>", "a", " ", "\n", "东🙂", "1234"]
NASTY = [*GLM_MARKERS, *PARTS]
CONTENT = st.lists(st.sampled_from(NASTY), max_size=8).map("".join)
JOINING = "<|user|>{% for m in messages %}{{ m.content }}{% endfor %}<|assistant|><think>"


def plain_render(source, messages, effort="low"):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(
        messages=messages, add_generation_prompt=True, reasoning_effort=effort
    )


def markers_of(prompt):
    return [piece.text for piece in prompt.pieces if piece.is_marker]


@settings(max_examples=200, deadline=None)
@given(user=CONTENT, answer=CONTENT, thought=CONTENT)
def test_text_and_markers_hold_whatever_users_write(
    template, metadata, tokenizer, user, answer, thought
):
    talk = [
        {"role": "user", "content": user},
        {"role": "assistant", "content": answer, "reasoning_content": thought},
        {"role": "user", "content": user},
    ]
    prompt = template.prompt(talk, effort=Effort.LOW)
    assert prompt.text == plain_render(metadata["tokenizer.chat_template"], talk)
    wanted = ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<think>"]
    wanted += ["</think>", "<|user|>", "<|assistant|>", "<think>"]
    assert markers_of(prompt) == wanted
    ids = tokenizer.encode_prompt(prompt)
    assert [tokenizer.decode([i]) for i in ids if i in range(356, 378)] == wanted
    assert tokenizer.decode(ids) == prompt.text


def test_encoding_the_plain_text_would_obey_the_user(template, tokenizer):
    talk = [{"role": "user", "content": "x<|user|>y</think>"}]
    prompt = template.prompt(talk, effort=Effort.LOW)
    assert tokenizer.encode(prompt.text, special=True) != tokenizer.encode_prompt(prompt)


@settings(max_examples=100, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=("Cs",), exclude_characters="<>[]"), max_size=40)
)
def test_without_markers_in_content_ids_equal_the_plain_text(template, tokenizer, text):
    prompt = template.prompt([{"role": "user", "content": text}], effort=Effort.HIGH)
    assert tokenizer.encode_prompt(prompt) == tokenizer.encode(prompt.text, special=True)


def test_content_beside_template_text_is_tokenised_as_one_text(tokenizer):
    # "Wh" + "ere the" must meet as if typed together: the merge crosses the seam.
    with ChatTemplate("<|user|>th{{ messages[0].content }}<|assistant|>") as joined:
        prompt = joined.prompt([{"role": "user", "content": "e <x"}], effort=Effort.LOW)
    user, assistant = map(tokenizer.marker_id, ("<|user|>", "<|assistant|>"))
    ids = tokenizer.encode_prompt(prompt)
    assert ids == [user, *tokenizer.encode("the <x"), assistant]
    apart = [*tokenizer.encode("th"), *tokenizer.encode("e <x")]
    assert ids != [user, *apart, assistant]


@pytest.mark.parametrize("marker", GLM_MARKERS)
def test_no_marker_grows_together_out_of_two_contents(marker):
    with ChatTemplate(JOINING) as joined:
        for cut in range(1, len(marker)):
            talk = [{"role": "user", "content": part} for part in (marker[:cut], marker[cut:])]
            prompt = joined.prompt(talk, effort=Effort.LOW)
            assert markers_of(prompt) == ["<|user|>", "<|assistant|>", "<think>"]
            assert prompt.text == f"<|user|>{marker}<|assistant|><think>"


def test_a_role_inside_a_template_marker_still_makes_a_marker():
    with ChatTemplate("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}") as made:
        prompt = made.prompt([{"role": "user", "content": "<|user|>"}], effort=Effort.LOW)
    assert prompt.pieces == (Piece("<|user|>", is_marker=True), Piece("<|user|>", is_marker=False))


@pytest.mark.parametrize("escape", ["false", "true"])
def test_wedges_leave_json_written_by_the_template(escape):
    tools = [{"name": "f<think>", "parameters": {"properties": {"</think>k": {"type": "string"}}}}]
    source = "{{ tools | tojson(ensure_ascii=" + escape + ") }}<|assistant|>"
    with ChatTemplate(source) as made:
        prompt = made.prompt([{"role": "user", "content": ""}], effort=Effort.LOW, tools=tools)
    assert markers_of(prompt) == ["<|assistant|>"]
    assert '"f<think>"' in prompt.text
    assert '"</think>k"' in prompt.text
    assert prompt.text.isascii()


def test_the_wedge_is_a_character_the_texts_lack():
    first = choose_wedge("abc")
    assert choose_wedge(f"a{first.mark}b").mark != first.mark
    assert choose_wedge(f"a{first.escaped}b").mark != first.mark
    with pytest.raises(RequestError):
        choose_wedge("".join(chr(0xFDD0 + i) for i in range(32)) + "".join(
            chr(plane + end) for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF)
        ))  # fmt: skip


def test_content_that_holds_wedge_characters_is_kept(template):
    content = "\ufdd0<think>\ufdd1"
    prompt = template.prompt([{"role": "user", "content": content}], effort=Effort.LOW)
    assert content in prompt.text


def test_a_marker_the_vocabulary_lacks_is_encoded_as_text(tokenizer):
    prompt = Prompt((Piece("a", is_marker=False), Piece("<|x|>", is_marker=True)))
    assert tokenizer.encode_prompt(prompt) == tokenizer.encode("a<|x|>")
