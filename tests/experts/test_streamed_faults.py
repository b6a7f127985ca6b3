"""Drives that fail, vanish, come back or never answer, and files that are cut short."""

from __future__ import annotations

import errno
import threading

import pytest

from localglm.errors import ModelFileError
from tests.experts.drives import Drive, borrow, make_home, make_layout, truth


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.ENXIO])
def test_a_read_that_fails_names_file_layer_and_expert_and_the_next_request_works(
    tmp_path, number
) -> None:
    layout, _ = make_layout()
    bad = layout.layers[3].of(4)[1].first_page
    broken = threading.Event()
    broken.set()

    def bend(call, offset, nbytes):
        return OSError(number, "") if broken.is_set() and offset == bad else None

    home = make_home(tmp_path, drive=Drive(b"", bend))
    home.expect(3, [1, 4], certain=True)
    with pytest.raises(ModelFileError) as caught:
        borrow(home, 3, [1, 4])
    assert caught.value.what == (
        f"{tmp_path / 'experts-0.bin'}: up of expert 4 in layer 3 cannot be read"
    )
    assert caught.value.why
    assert "drive" in caught.value.try_
    home._cache.check()
    with pytest.raises(ModelFileError):
        borrow(home, 3, [4])
    assert borrow(home, 2, [4])[0] == truth(2, [4])
    broken.clear()
    home.expect(3, [1, 4], certain=True)
    assert borrow(home, 3, [1, 4])[0] == truth(3, [1, 4])
    home.close()


def test_a_guess_that_fails_is_no_error(tmp_path) -> None:
    layout, _ = make_layout()
    bad = layout.layers[3].of(4)[0].first_page
    home = make_home(
        tmp_path,
        drive=Drive(b"", lambda n, offset, size: OSError(errno.EIO, "") if offset == bad else None),
    )
    home.expect(3, [4], certain=False)
    for layer in (2, 5, 2, 5):
        assert borrow(home, layer, [0, 1])[0] == truth(layer, [0, 1])
    with pytest.raises(ModelFileError, match="gate of expert 4 in layer 3"):
        borrow(home, 3, [4])
    home.close()


def test_a_file_cut_short_is_said_to_be_and_works_when_it_is_back(tmp_path) -> None:
    home = make_home(tmp_path)
    path = tmp_path / "experts-0.bin"
    whole = path.read_bytes()
    layout, _ = make_layout()
    last = layout.layers[5].of(8)[2]
    with path.open("r+b") as file:
        file.truncate(last.offset + last.nbytes - 1)
    assert borrow(home, 2, [0])[0] == truth(2, [0])
    with pytest.raises(ModelFileError, match=r"down of expert 8 in layer 5") as caught:
        borrow(home, 5, [7, 8])
    assert "cut short" in caught.value.why
    path.write_bytes(whole)
    assert borrow(home, 5, [7, 8])[0] == truth(5, [7, 8])
    home.close()


def test_a_drive_that_is_gone_and_comes_back_is_opened_again(tmp_path) -> None:
    gone = threading.Event()
    home = make_home(
        tmp_path,
        drive=Drive(b"", lambda n, at, size: OSError(errno.ENODEV, "") if gone.is_set() else None),
    )
    path = tmp_path / "experts-0.bin"
    gone.set()
    with pytest.raises(ModelFileError, match="cannot be read"):
        borrow(home, 2, [0])
    aside = path.rename(tmp_path / "aside.bin")
    home.expect(2, [0], certain=True)
    with pytest.raises(ModelFileError, match=r"experts-0\.bin cannot be read"):
        borrow(home, 2, [0])
    aside.rename(path)
    gone.clear()
    assert borrow(home, 2, [0])[0] == truth(2, [0])
    home.close()


def test_a_drive_that_does_not_answer_is_reported_and_may_come_back(tmp_path) -> None:
    gate = threading.Event()

    def bend(number, offset, nbytes):
        assert gate.wait(60)

    home = make_home(tmp_path, drive=Drive(b"", bend), patience=0.05)
    home.expect(2, [0, 1], certain=True)
    for _ in range(2):
        with pytest.raises(ModelFileError, match="the drive does not answer"):
            borrow(home, 2, [0, 1])
    with pytest.raises(ModelFileError, match="the drive does not answer"):
        borrow(home, 3, list(range(9)))
    gate.set()
    assert borrow(home, 3, range(9))[0] == truth(3, range(9))
    assert borrow(home, 2, [0, 1])[0] == truth(2, [0, 1])
    home.close()


def test_closing_does_not_wait_for_a_drive_that_does_not_answer(tmp_path) -> None:
    gate, began, left = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)

    def bend(number, offset, nbytes):
        began.release()
        assert gate.wait(60)
        left.release()

    home = make_home(tmp_path, drive=Drive(b"", bend), depth=2)
    home.expect(2, [0, 1], certain=True)
    for _ in range(2):
        assert began.acquire(timeout=60)
    home.close(seconds=0.01)
    gate.set()
    for _ in range(2):
        assert left.acquire(timeout=60)
