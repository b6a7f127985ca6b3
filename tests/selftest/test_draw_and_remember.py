"""The matrix as text, and results kept for exactly one version, library, device and driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import localglm
from localglm.doctor.selftest import Card, Result, SelfTest, keep, matrix, remembered

CARD = Card("Example 9000", "1.2.3")
GOOD = Result("op", "add", "passed", 3, 0.5, "1x33", 0.01)
BAD = Result("op", "matmul", "failed", 9, 250.0, "Q4_K 1x256", 0.02)
EXACT = Result("arithmetic", "division", "failed", 1, None, "division", 0.0)
HUNG = Result("op", "route", "hung", 0, None, "", 0.0, "no progress")
PASSED = SelfTest("quick", "cpu", CARD, "passed", (GOOD,), 0.4)
FAILED = SelfTest(
    "quick", "webgpu", CARD, "failed", (GOOD, BAD, EXACT, HUNG), 0.4, advice="use --backend cpu"
)


def test_the_matrix_has_a_row_per_op_and_a_column_per_back_end() -> None:
    lines = matrix([PASSED, FAILED]).splitlines()
    assert lines[0].split() == ["op", "cpu", "webgpu"]
    assert lines[2].split() == ["add", "✓", "0.50", "█████░░░░░", "✓", "0.50", "█████░░░░░"]
    assert lines[3].split() == ["matmul", "·", "✗", "2e+02", "██████████"]
    assert "division  ·                    ✗ not exact" in lines
    assert "✗ hung" in "\n".join(lines)
    assert "matmul: 250 tolerances off (Q4_K 1x256)" in lines
    assert lines[-1] == "try: use --backend cpu"


def test_the_ascii_matrix_is_ascii_and_the_other_is_not() -> None:
    assert matrix([PASSED, FAILED], ascii_only=True).isascii()
    assert not matrix([PASSED, FAILED]).isascii()


def test_a_kept_result_comes_back_whole(tmp_path: Path) -> None:
    for test in (PASSED, FAILED):
        assert keep(test, tmp_path)
        assert remembered(test.backend, CARD, tmp_path) == test
    assert len(list((tmp_path / "self-test").iterdir())) == 2


def test_another_driver_card_or_version_has_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(PASSED, tmp_path)
    assert remembered("cpu", replace(CARD, driver="1.2.4"), tmp_path) is None
    assert remembered("cpu", replace(CARD, name="Example 9001"), tmp_path) is None
    assert remembered("cpu", CARD, tmp_path) is not None
    monkeypatch.setattr(localglm, "__version__", "99")
    assert remembered("cpu", CARD, tmp_path) is None


def test_another_library_has_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native = tmp_path / "localglm" / "backends" / "cpu" / "_native"
    native.mkdir(parents=True)
    (native / "lib.so").write_bytes(b"one")
    monkeypatch.setattr(localglm, "__file__", str(tmp_path / "localglm" / "__init__.py"))
    keep(PASSED, tmp_path)
    assert remembered("cpu", CARD, tmp_path) == PASSED
    (native / "lib.so").write_bytes(b"two")
    assert remembered("cpu", CARD, tmp_path) is None


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert not keep(PASSED, blocked)
    assert remembered("cpu", CARD, blocked) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"level": "quick"}', b"\xff\xfe"])
def test_a_damaged_result_is_none(tmp_path: Path, content: bytes) -> None:
    keep(PASSED, tmp_path)
    next((tmp_path / "self-test").iterdir()).write_bytes(content)
    assert remembered("cpu", CARD, tmp_path) is None


def test_a_stopped_test_is_not_kept(tmp_path: Path) -> None:
    assert not keep(replace(PASSED, verdict="stopped"), tmp_path)
    assert remembered("cpu", CARD, tmp_path) is None


def test_a_quick_test_replaces_a_full_one_only_when_they_disagree(tmp_path: Path) -> None:
    full = replace(PASSED, level="full")
    keep(full, tmp_path)
    keep(PASSED, tmp_path)
    assert remembered("cpu", CARD, tmp_path) == full
    keep(replace(PASSED, verdict="failed"), tmp_path)
    assert remembered("cpu", CARD, tmp_path) == replace(PASSED, verdict="failed")
