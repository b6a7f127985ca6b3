"""Stop strings: found whatever the pieces, never shown in part."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm.engine.stops import StopMatcher
from localglm.errors import UsageError


def run(pieces: list[str], stops: tuple[str, ...]) -> tuple[str, str | None]:
    matcher = StopMatcher(stops)
    text = "".join([matcher.push(piece) for piece in pieces])
    return text + matcher.finish(), matcher.matched


def test_a_stop_string_over_three_pieces_is_found() -> None:
    assert run(["one E", "N", "D two"], ("END",)) == ("one ", "END")


def test_text_that_only_begins_like_a_stop_comes_out_in_the_end() -> None:
    matcher = StopMatcher(("END",))
    assert matcher.push("the EN") == "the "
    assert matcher.push("try") == "ENtry"
    assert matcher.push("E") == ""
    assert matcher.finish() == "E"


def test_the_string_that_is_complete_first_wins() -> None:
    assert run(["abcX"], ("abcX", "bc")) == ("a", "bc")
    assert run(list("abcX"), ("abcX", "bc")) == ("a", "bc")


def test_nothing_passes_after_the_stop() -> None:
    matcher = StopMatcher(("#",))
    assert matcher.push("a#b") == "a"
    assert matcher.push("c") == ""
    assert matcher.finish() == ""


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(UsageError, match="empty"):
        StopMatcher(("a", ""))


@settings(max_examples=300, deadline=None)
@given(
    st.text("ab", max_size=24),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3).map(tuple),
    st.lists(st.integers(0, 24), max_size=5),
)
def test_any_cut_gives_the_result_of_one_piece(
    text: str, stops: tuple[str, ...], cuts: list[int]
) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert run(pieces, stops) == run([text], stops)
    shown, matched = run([text], stops)
    assert not any(stop in shown for stop in stops)
    assert (matched is None) == (shown == text)
