"""Streaming ids into text: nothing by halves, and the same text as at once."""

from __future__ import annotations

import re
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.text.markers import GLM_MARKERS, MarkerSet, Piece

REPLACEMENT = "\ufffd"


def stream_all(tokenizer, ids):
    stream = tokenizer.stream()
    return [*(stream.push(number) for number in ids), stream.finish()]


@settings(max_examples=300, deadline=None)
@given(ids=st.lists(st.integers(0, 383), max_size=40))
def test_streamed_equals_whole_for_any_ids(tokenizer, ids):
    parts = stream_all(tokenizer, ids)
    assert "".join(parts) == tokenizer.decode(ids)
    whole = b"".join(tokenizer._bytes_of(number) for number in ids)
    assert "".join(parts) == whole.decode("utf-8", "replace")


def cuts_inside_markers(parts, text):
    cuts = list(accumulate(map(len, parts)))
    spans = [match.span() for match in re.finditer("|".join(map(re.escape, GLM_MARKERS)), text)]
    return [cut for cut in cuts for start, end in spans if start < cut < end]


SCRAPS = st.sampled_from([*GLM_MARKERS, *"a<|>/东🙂é[ \n", "<|us", "</thin"])


@settings(max_examples=200, deadline=None)
@given(text=st.lists(SCRAPS, max_size=12).map("".join))
def test_no_part_ends_in_half_a_character_or_half_a_marker(tokenizer, text):
    parts = stream_all(tokenizer, tokenizer.encode(text))
    assert "".join(parts) == text
    assert REPLACEMENT not in "".join(parts)
    assert cuts_inside_markers(parts, text) == []


def test_handing_on_every_token_would_cut_markers(tokenizer):
    text = "a<|user|>"
    parts = [tokenizer.decode([number]) for number in tokenizer.encode(text)]
    assert cuts_inside_markers(parts, text) != []


def test_decoding_token_by_token_would_break_characters(tokenizer):
    ids = tokenizer.encode("🙂")
    assert len(ids) > 1
    assert REPLACEMENT in "".join(tokenizer.decode([number]) for number in ids)
    assert stream_all(tokenizer, ids)[:-2] == [""] * (len(ids) - 1)
    assert "".join(stream_all(tokenizer, ids)) == "🙂"


def test_an_unfinished_character_shows_at_the_end_only(tokenizer):
    ids = tokenizer.encode("a🙂")[:-1]
    parts = stream_all(tokenizer, ids)
    assert parts[-1] == REPLACEMENT
    assert REPLACEMENT not in "".join(parts[:-1])


def test_a_marker_written_as_one_id_is_told_from_the_same_text(tokenizer):
    def pieces(ids):
        stream = tokenizer.stream()
        found = [piece for number in ids for piece in stream.push_pieces(number)]
        return [*found, *stream.finish_pieces()]

    typed = pieces(tokenizer.encode("<think>"))
    assert "".join(piece.text for piece in typed) == "<think>"
    assert not any(piece.is_marker for piece in typed)
    assert pieces(tokenizer.encode("<think>", special=True)) == [Piece("<think>", is_marker=True)]


def test_text_held_back_comes_before_the_marker_that_follows(tokenizer):
    ids = [*tokenizer.encode("a<|us"), tokenizer.marker_id("<|user|>")]
    assert "".join(stream_all(tokenizer, ids)) == "a<|us<|user|>"


@pytest.mark.parametrize(
    ("text", "held"),
    [("a<", 1), ("a<|user|", 7), ("<|user|>", 0), ("< ", 0), ("<<thi", 4), ("", 0)],
)
def test_exactly_the_start_of_a_marker_is_held(text, held):
    assert MarkerSet.of(GLM_MARKERS).held(text) == held
