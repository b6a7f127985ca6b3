"""The fast encoding is the program's own, token by token."""

from __future__ import annotations

import pytest

from localglm.text.builtin import BUILT_IN_TEMPLATE
from localglm.text.template import ChatTemplate
from localglm.text.thinking import Effort
from localglm.text.tokenizer import Tokenizer
from training.data.conversation import EFFORTS, Conversation, messages
from training.data.encode import Writer
from training.data.kinds import KINDS, Kind
from training.data.pick import Pick, Split, Want
from training.data.topics import TOPICS
from training.data.vocabulary import (
    FIRST_MARKER,
    IDS,
    SIZE,
    TEMPLATE_FILE,
    Encoder,
    entries,
)

ENCODER = Encoder()
WRITER = Writer(ENCODER)


@pytest.fixture(scope="module")
def product():
    metadata = entries().metadata()
    with ChatTemplate.from_metadata(metadata) as template:
        yield Tokenizer.from_metadata(metadata), template


def samples(kind: Kind, count: int) -> list[Conversation]:
    pick = Pick(f"encoding {kind.name}")
    made = []
    for place in range(count):
        effort = EFFORTS[place % len(EFFORTS)]
        want = Want(Split.TRAIN, effort, pick.of(TOPICS), pick.within(80, 700), ENCODER.count)
        made.append(kind.make(pick, want))
    return made


def tools_of(conversation: Conversation):
    return [tool.spec for tool in conversation.tools] or None


def check_prompts(product, conversations: list[Conversation]) -> None:
    tokenizer, template = product
    for made in conversations:
        prompt = template.prompt(
            messages(made.turns[:-1]), effort=Effort(made.effort), tools=tools_of(made)
        )
        assert tokenizer.encode_prompt(prompt) == WRITER.prompt(made), made
        last = WRITER.whole(made)
        rest = last.ids[len(WRITER.prompt(made)) :]
        assert all(last.taught[-len(rest) :])


def check_whole(product, conversations: list[Conversation]) -> None:
    tokenizer, template = product
    for made in conversations:
        level = Effort.LOW if made.effort == "off" else Effort(made.effort)
        whole = template.prompt(
            messages(made.turns), effort=level, tools=tools_of(made), add_generation_prompt=False
        )
        assert tokenizer.encode_prompt(whole) == WRITER.whole(made).ids[:-1], made


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_prompts_have_the_ids_the_program_makes(product, kind: Kind):
    check_prompts(product, samples(kind, 40))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_whole_conversations_have_the_ids_of_past_turns(product, kind: Kind):
    check_whole(product, samples(kind, 20))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_five_hundred_of_every_kind_have_the_ids_the_program_makes(product, kind: Kind):
    made = samples(kind, 500)
    check_prompts(product, made)
    check_whole(product, made)


def test_a_template_with_another_line_break_gives_other_ids():
    source = TEMPLATE_FILE.read_text(encoding="utf-8")
    changed = source.replace("<|user|>{{", "<|user|>\n{{")
    assert changed != source
    metadata = entries().metadata() | {"tokenizer.chat_template": changed}
    made = samples(KINDS[0], 1)[0]
    with ChatTemplate.from_metadata(metadata) as template:
        prompt = template.prompt(messages(made.turns[:-1]), effort=Effort(made.effort))
    tokenizer = Tokenizer.from_metadata(metadata)
    assert tokenizer.encode_prompt(prompt) != WRITER.prompt(made)


def test_the_shipped_template_renders_as_the_built_in_one(product):
    _, template = product
    with ChatTemplate(BUILT_IN_TEMPLATE) as built_in:
        for kind in KINDS:
            made = samples(kind, 2)[1]
            given = messages(made.turns)
            for level in (Effort.OFF, Effort.LOW, Effort.HIGH, Effort.MAX):
                expected = built_in.render(given, effort=level, tools=tools_of(made))
                assert template.render(given, effort=level, tools=tools_of(made)) == expected


def test_every_group_of_digits_is_one_token():
    for width in (1, 2, 3):
        for number in range(10**width):
            ids = ENCODER.encode(f"{number:0{width}}")
            assert len(ids) == 1
    assert len(ENCODER.encode("1234")) == 2
    assert len({ENCODER.encode(text)[0] for text in ("7", "07", "007")}) == 3


def test_markers_end_the_vocabulary_and_text_never_becomes_one(product):
    tokenizer, _ = product
    listed = entries()
    assert len(listed.tokens) == SIZE == tokenizer.vocabulary_size
    assert sorted(IDS.values()) == list(range(FIRST_MARKER, SIZE))
    assert tokenizer.notes == ()
    assert tokenizer.end_of_turn == {
        IDS["<|user|>"],
        IDS["<|observation|>"],
        IDS["<|endoftext|>"],
    }
    typed = ENCODER.encode("<|user|> <think>")
    assert max(typed) < FIRST_MARKER
    assert typed == tokenizer.encode("<|user|> <think>")


def test_any_text_survives_encoding_and_decoding(product):
    tokenizer, _ = product
    for text in ("Zoë's naïve café 🙂\n\n\t x_y  z", "价格 12345 元", "I'LL don't", "a\r\nb  "):
        ids = ENCODER.encode(text)
        assert ids == tokenizer.encode(text)
        assert tokenizer.decode(ids) == text


def test_loss_covers_what_the_model_writes_and_nothing_else():
    for kind in KINDS:
        for made in samples(kind, 8):
            whole = WRITER.whole(made)
            assert len(whole.ids) == len(whole.taught)
            kept = [n for n, taught in zip(whole.ids, whole.taught, strict=True) if taught]
            expected: list[int] = []
            for turn in made.turns:
                if turn.role != "assistant":
                    continue
                if turn.thought is not None:
                    expected += [*ENCODER.encode(turn.thought), IDS["</think>"]]
                expected += ENCODER.encode(turn.content)
                for call in turn.calls:
                    expected += [IDS["<tool_call>"], *ENCODER.encode(call.name)]
                    for key, value in call.arguments:
                        expected += [IDS["<arg_key>"], *ENCODER.encode(key), IDS["</arg_key>"]]
                        expected += [IDS["<arg_value>"], *ENCODER.encode(str(value))]
                        expected += [IDS["</arg_value>"]]
                    expected.append(IDS["</tool_call>"])
                expected.append(IDS["<|observation|>" if turn.calls else "<|user|>"])
            assert kept == expected
