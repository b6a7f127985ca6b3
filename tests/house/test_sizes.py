"""The size check: what it counts as a leftover, and that the code base passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from build_tools import sizes


@pytest.mark.parametrize(
    ("text", "is_leftover"),
    [
        ("# todo: later\n".upper(), True),
        ("# xxx\n".upper(), True),
        ("raise NotImplemented-Error\n".replace("-", ""), True),
        ("except NotImplementedError:\n    kind = 'IQ2_XXS'\n", False),
        ("todos = iq3_xxs\n".upper(), False),
    ],
)
def test_leftovers_are_told_from_names_that_look_like_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, is_leftover: bool
) -> None:
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    file = tmp_path / "part.h"
    file.write_text(text)
    assert (sizes.check_file(file, 100)[1] != []) is is_leftover


def test_a_long_file_and_a_long_function_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    file = tmp_path / "part.py"
    file.write_text("def long() -> None:\n" + "    print()\n" * 60)
    assert sizes.check_file(file, 61)[1] == ["part.py: long has 61 lines, limit 60"]
    assert "61 lines, limit 60" in sizes.check_file(file, 60)[1][0]
