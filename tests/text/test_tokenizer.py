"""Tokens: the oracle's ids, splitting rules, markers, and refusals."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Engine

from localglm.errors import ModelFileError, RequestError
from localglm.text.markers import GLM_MARKERS
from localglm.text.tokenizer import Tokenizer
from localglm.text.vocabulary import read_vocabulary, usable_merges

TEXTS = [
    "digits 1 12 123 1234 rfid501 240 2400 504 5504 3.14159265",
    "Han 东京 next to Latin 你好world\uff0c世界。",
    "emoji 🙂🙃👩‍👩‍👧‍👦🏳️‍🌈 and \u200b zero width",
    "tabs\tand\t\tmore\r\nCRLF\r\n\r\nlines \n \n",
    "It's WE'RE i'Ve don'T",
    "العربية ٣٤٥٦ ½ Ⅷ नमस्ते ภาษาไทย 한국어",
    "".join(map(chr, range(32))) + "\x7f\x80\ufeff\ufffd\U0010ffff",
    "",
]


def test_every_oracle_case_gives_the_same_ids(tokenizer, cases):
    for case in cases["tokenizer"]:
        assert tokenizer.encode(case["text"], special=True) == case["ids"], case["text"]
        assert tokenizer.decode(case["ids"]) == case["decoded"]


def test_both_dialects_encode_alike(tokenizer, upstream_metadata, cases):
    other = Tokenizer.from_metadata(upstream_metadata)
    assert upstream_metadata["tokenizer.ggml.pre"] == "glm5"
    for case in cases["tokenizer"]:
        assert other.encode(case["text"], special=True) == case["ids"]
    assert other.notes == tokenizer.notes == ()


def plain_engine(metadata, pattern):
    vocabulary = read_vocabulary(metadata)
    ids = {text: place for place, text in enumerate(vocabulary.tokens)}
    engine = Engine(models.BPE(vocab=ids, merges=usable_merges(vocabulary)[0]))
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return engine


def test_digits_come_by_three_and_not_one_by_one(tokenizer, metadata):
    # "202" is one merged token of this vocabulary; splitting digits singly can never reach it.
    ids = tokenizer.encode("2025")
    assert tokenizer.decode(ids[:1]) == "202"
    singly = plain_engine(metadata, r"\p{N}|[^\p{N}]+")
    assert singly.encode("2025").ids != ids


@pytest.mark.parametrize("marker", GLM_MARKERS)
def test_a_marker_typed_by_a_user_stays_text(tokenizer, cases, marker):
    number = cases["special"][marker]
    typed = tokenizer.encode(f"a{marker}b")
    assert number not in typed
    assert tokenizer.decode(typed) == f"a{marker}b"
    assert tokenizer.encode(f"a{marker}b", special=True).count(number) == 1
    assert tokenizer.marker_id(marker) == number


def test_markers_are_found_by_text_even_when_typed_as_normal(metadata, cases):
    changed = metadata | {"tokenizer.ggml.token_type": [1] * 384}
    missing = {k: v for k, v in metadata.items() if k != "tokenizer.ggml.token_type"}
    for variant in (changed, missing):
        made = Tokenizer.from_metadata(variant)
        assert made.encode("<think>", special=True) == [cases["special"]["<think>"]]
        assert made.encode("<think>") != [cases["special"]["<think>"]]


def test_a_merge_that_builds_a_marker_is_left_out_with_a_note(metadata):
    tokens = [*metadata["tokenizer.ggml.tokens"]]
    at = tokens.index("<think>")
    tokens[378:384] = ["<t", "<th", "!!", "ink", "ink>", "??"]
    if "in" not in tokens:
        tokens[380] = "in"
    merges = ["< t", "<t h", "i n", "in k", "ink >", "<th ink>"]
    made = Tokenizer.from_metadata(
        metadata | {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": merges}
    )
    assert at not in made.encode("<think>")
    assert any("marker" in note for note in made.notes)


def test_end_of_turn_holds_all_three_by_id_and_by_text(tokenizer, metadata, cases):
    names = ("<|endoftext|>", "<|user|>", "<|observation|>")
    wanted = {cases["special"][name] for name in names}
    assert tokenizer.end_of_turn == wanted
    keys = [f"tokenizer.ggml.{kind}_token_id" for kind in ("eos", "eot", "eom")]
    bare = {k: v for k, v in metadata.items() if k not in keys}
    assert Tokenizer.from_metadata(bare).end_of_turn == wanted
    other = Tokenizer.from_metadata(metadata | {keys[0]: 5})
    assert other.end_of_turn == wanted | {5}


@pytest.mark.parametrize("text", TEXTS)
def test_hard_texts_survive_the_round_trip(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_any_text_survives_the_round_trip(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not set(ids) & set(map(tokenizer.marker_id, GLM_MARKERS))


def mixed_megabyte():
    pick = random.Random(7)
    parts, size = [], 0
    while size < 1_000_000:
        part = pick.choice(TEXTS) + pick.choice(
            ["\n", " ", "", "<|user|>", "x" * pick.randrange(9)]
        )
        parts.append(part)
        size += len(part.encode())
    return "".join(parts)


def test_a_mixed_megabyte_survives_the_round_trip(tokenizer):
    text = mixed_megabyte()
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(ids[:-1]) != text


def test_a_long_run_of_one_letter_or_of_spaces_does_not_hang(tokenizer):
    for text in ("a" * 300_000, " " * 300_000 + "x", "\n!" * 150_000):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_half_a_surrogate_pair_is_refused_with_its_place(tokenizer):
    with pytest.raises(RequestError) as caught:
        tokenizer.encode("ab\ud800")
    assert "character 3" in caught.value.why


@pytest.mark.parametrize("number", [-1, 384, 10**9])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer, number):
    assert tokenizer.vocabulary_size == 384
    with pytest.raises(RequestError, match=str(number)):
        tokenizer.decode([number])


def test_an_unknown_split_is_refused_by_name_with_the_accepted_ones(metadata):
    with pytest.raises(ModelFileError, match="gpt-4o") as caught:
        Tokenizer.from_metadata(metadata | {"tokenizer.ggml.pre": "gpt-4o"})
    assert all(name in caught.value.why for name in ("glm4", "glm5", "chatglm-bpe", "glm-4"))


@pytest.mark.parametrize("split", ["default", None])
def test_a_missing_or_default_split_means_glm4_with_a_note(metadata, cases, split):
    changed = {k: v for k, v in metadata.items() if k != "tokenizer.ggml.pre"}
    if split is not None:
        changed["tokenizer.ggml.pre"] = split
    made = Tokenizer.from_metadata(changed)
    assert [note for note in made.notes if "glm4" in note]
    for case in cases["tokenizer"]:
        assert made.encode(case["text"], special=True) == case["ids"]


@pytest.mark.parametrize("split", ["glm4", "glm5", "glm-4", "chatglm-bpe"])
def test_an_accepted_split_needs_no_note(metadata, split):
    assert Tokenizer.from_metadata(metadata | {"tokenizer.ggml.pre": split}).notes == ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "none"}, "no vocabulary"),
        ({"model": None}, "no vocabulary"),
        ({"model": "llama"}, "'llama'"),
        ({"model": ["gpt2"]}, "kind"),
        ({"pre": 4}, "splitting rule 4"),
        ({"tokens": None}, "tokens"),
        ({"tokens": []}, "empty"),
        ({"tokens": "abc"}, "tokens"),
        ({"tokens": ["a", 3]}, "tokens"),
        ({"tokens": ["a", "b"], "token_type": None, "merges": None}, "256 byte"),
        ({"token_type": [1, 2]}, "not consistent"),
        ({"token_type": 3}, "token_type"),
        ({"merges": ["h e", "zz yy"]}, "'zz yy'"),
        ({"merges": ["he"]}, "'he'"),
        ({"eos_token_id": 384}, "384"),
        ({"eot_token_id": -1}, "-1"),
        ({"eom_token_id": "x"}, "'x'"),
    ],
)
def test_a_vocabulary_that_cannot_be_used_is_refused(metadata, changes, words):
    changed = metadata | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    with pytest.raises(ModelFileError, match=words) as caught:
        Tokenizer.from_metadata({k: v for k, v in changed.items() if v is not None})
    assert caught.value.why
    assert caught.value.try_
