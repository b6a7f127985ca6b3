"""The depth of a drive: which one is chosen, and what becomes of the memory of it."""

from __future__ import annotations

import json

import pytest

from localglm.experts import drive


@pytest.mark.parametrize(
    ("rates", "depth"),
    [
        ({1: 10, 4: 20, 8: 30, 16: 30.5, 32: 31}, 16),
        ({1: 10, 4: 20, 8: 30, 16: 40, 32: 60}, 32),
        ({1: 60, 4: 50, 8: 40, 16: 30, 32: 20}, 1),
        ({1: 40, 4: 60, 8: 61, 16: 50, 32: 20}, 4),
    ],
)
def test_the_usual_depth_is_left_only_for_a_better_one(rates, depth) -> None:
    assert drive.choose(rates) == depth


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(bytes(2 << 20))
    return path


@pytest.fixture
def measured(monkeypatch):
    """Replace the measurement by one that counts how often it is asked for."""
    asked = []

    def measure(path):
        asked.append(path)
        return {1: 1.0, 4: 5.0, 8: 9.0, 16: 1.0, 32: 1.0}

    monkeypatch.setattr(drive, "measure", measure)
    return asked


def test_a_drive_is_measured_once_and_remembered(model, measured, tmp_path) -> None:
    folder = tmp_path / "data" / "localglm"
    first, second = (drive.drive_depth(model, folder) for _ in range(2))
    assert (first.depth, second.depth, len(measured)) == (8, 8, 1)
    assert (first.notes, second.notes, second.rates) == ((), (), {})
    assert list(json.loads((folder / "drives.json").read_text()).values()) == [8]
    assert [file.name for file in folder.iterdir()] == ["drives.json"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"1-2": 7}', '{"1-2": "8"}', "\x00"])
def test_a_damaged_memory_is_measured_again(model, measured, tmp_path, text) -> None:
    (tmp_path / "drives.json").write_text(text)
    assert drive.drive_depth(model, tmp_path).depth == 8
    assert drive.drive_depth(model, tmp_path).notes == ()
    assert len(measured) == 1


def test_a_folder_that_cannot_be_written_is_a_note(model, measured, tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    found = drive.drive_depth(model, blocked / "localglm")
    assert found.depth == 8
    assert "drives are measured" in found.notes[-1]
    assert drive.drive_depth(model, None).notes == ()
    assert len(measured) == 2


def test_a_real_file_is_measured_at_every_depth(model) -> None:
    rates = drive.measure(model, seconds=0.01)
    assert tuple(rates) in {drive.DEPTHS, ()}, "empty where the system has no direct reads"
    assert all(rate > 0 for rate in rates.values())


def test_a_file_too_small_to_measure_gets_the_usual_depth_and_a_note(tmp_path) -> None:
    path = tmp_path / "small.gguf"
    path.write_bytes(bytes(100))
    found = drive.drive_depth(path, tmp_path)
    assert found.depth == drive.DEFAULT_DEPTH
    assert "could not be measured" in found.notes[0]
