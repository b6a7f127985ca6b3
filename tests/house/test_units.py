"""Sizes, counts and durations in words."""

from __future__ import annotations

import pytest

from localglm.errors import LocalGlmError, ModelFileError, ShapeError, UsageError
from localglm.units import count_text, duration_text, size_text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (99_750_000_000, "92.9 GiB")],
)
def test_sizes(nbytes: int, text: str) -> None:
    assert size_text(nbytes) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(7, "7"), (271174, "271,174"), (17_400_000, "17.4 M"), (313_330_000_000, "313.33 B")],
)
def test_counts(count: int, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.4 s"),
        (12.4, "12 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7440, "2 h 04 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_errors_keep_their_parts_across_processes() -> None:
    import pickle

    err = pickle.loads(pickle.dumps(ModelFileError("a", why="b", try_="c")))
    assert isinstance(err, ModelFileError)
    assert err.lines() == ["error: a", "  why: b", "  try: c"]


def test_every_kind_of_user_error_has_its_own_exit_code() -> None:
    kinds = [k for k in LocalGlmError.__subclasses__() if k is not ShapeError]
    codes = [k.exit_code for k in kinds]
    assert len(set(codes)) == len(codes)
    assert UsageError.exit_code == 2
