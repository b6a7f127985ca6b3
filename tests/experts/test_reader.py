"""The reader: order, short reads, interruptions, ends of files, faults, stuck drives."""

from __future__ import annotations

import ctypes
import errno
import threading

import numpy as np
import pytest

from localglm.errors import ModelFileError
from localglm.experts.layout import PAGE
from localglm.experts.library import load
from localglm.experts.reader import DriveFile, Outcome, Reader, ReadSpan
from tests.experts.drives import Drive

CONTENT = np.random.default_rng(5).bytes(40 * PAGE + 100)


class Memory:
    """Aligned memory to read into."""

    def __init__(self, nbytes=64 * PAGE):
        self.nbytes = nbytes
        self.address = load().lg_memory_take(nbytes)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        load().lg_memory_give(self.address, self.nbytes)

    def text(self, first, count):
        return ctypes.string_at(self.address + first, count)


def read_all(reader, count=1):
    endings = {}
    while len(endings) < count:
        for ending in reader.wait(10):
            endings[ending.id] = ending
    return endings


def read_once(bend=None, *, offset=PAGE, nbytes=9 * PAGE, needed=None, piece=2 * PAGE, threads=3):
    """Read one span with a bent drive; returns how it ended, whether the bytes are right, calls."""
    drive = Drive(CONTENT, bend)
    reader = Reader(threads, piece=piece, read=drive.read)
    needed = nbytes if needed is None else needed
    try:
        with Memory() as memory:
            reader.submit(7, [ReadSpan(0, offset, nbytes, needed, memory.address)], urgent=True)
            ending = read_all(reader)[7]
            return ending, memory.text(0, needed) == CONTENT[offset : offset + needed], drive.calls
    finally:
        assert reader.close()


def test_a_read_is_cut_into_pieces_that_cover_it_once() -> None:
    ending, is_right, calls = read_once()
    assert (ending.outcome, is_right) == (Outcome.DONE, True)
    assert sorted(calls) == [(PAGE * at, min(2, 10 - at) * PAGE) for at in range(1, 10, 2)]


def test_an_interrupted_read_is_repeated() -> None:
    def bend(number, offset, nbytes):
        return OSError(errno.EINTR, "") if number % 2 else None

    ending, is_right, calls = read_once(bend, threads=1)
    assert (ending.outcome, is_right, len(calls)) == (Outcome.DONE, True, 10)


def test_a_short_read_goes_on_from_an_aligned_place() -> None:
    def bend(number, offset, nbytes):
        return PAGE + 512 if nbytes > PAGE else None

    ending, is_right, calls = read_once(bend)
    assert (ending.outcome, is_right) == (Outcome.DONE, True)
    assert all(offset % PAGE == 0 for offset, _ in calls)


def test_the_last_bytes_of_a_file_may_end_inside_a_page() -> None:
    offset = 38 * PAGE
    fits = read_once(offset=offset, nbytes=3 * PAGE, needed=2 * PAGE + 100)
    misses = read_once(offset=offset, nbytes=3 * PAGE, needed=2 * PAGE + 101)
    assert fits[:2] == (fits[0], True)
    assert (fits[0].outcome, misses[0].outcome) == (Outcome.DONE, Outcome.END)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODEV, errno.EBADF])
def test_a_fault_ends_the_request_with_the_number_of_the_system(number) -> None:
    ending, _, calls = read_once(
        lambda call, offset, nbytes: OSError(number, "") if call == 2 else None, threads=1
    )
    assert (ending.outcome, ending.fault, ending.span) == (Outcome.FAULT, number, 0)
    assert len(calls) == 2, "nothing more is read of a request that failed"


def test_the_span_that_failed_is_named() -> None:
    drive = Drive(CONTENT)
    reader = Reader(2, piece=PAGE, read=drive.read)
    with Memory() as memory:
        spans = [ReadSpan(0, at, PAGE, PAGE, memory.address) for at in (0, PAGE, 90 * PAGE)]
        reader.submit(1, spans, urgent=True)
        ending = read_all(reader)[1]
    assert (ending.outcome, ending.span) == (Outcome.END, 2)
    assert reader.close()


def held_back(reader_threads=1):
    """Return a drive that holds its first read back, with the gate that lets it go."""
    gate, began = threading.Event(), threading.Event()

    def bend(number, offset, nbytes):
        if number == 1:
            began.set()
            assert gate.wait(60)

    drive = Drive(CONTENT, bend)
    return drive, Reader(reader_threads, piece=PAGE, read=drive.read), gate, began


def test_what_is_certain_is_read_before_guesses_and_guesses_can_be_withdrawn() -> None:
    drive, reader, gate, began = held_back()
    with Memory() as memory:

        def submit(id_, *, urgent):
            span = ReadSpan(0, id_ * PAGE, PAGE, PAGE, memory.address + id_ * PAGE)
            reader.submit(id_, [span], urgent=urgent)

        submit(1, urgent=False)
        assert began.wait(60)
        for id_ in (2, 3, 4):
            submit(id_, urgent=False)
        submit(5, urgent=True)
        reader.promote(4)
        reader.withdraw(2)
        assert [e.outcome for e in reader.wait(10)] == [Outcome.WITHDRAWN]
        gate.set()
        endings = read_all(reader, 4)
    assert [offset // PAGE for offset, _ in drive.calls] == [1, 4, 5, 3]
    assert {e.outcome for e in endings.values()} == {Outcome.DONE}
    assert reader.close()


def test_a_withdrawn_request_ends_when_its_last_piece_is_back() -> None:
    _, reader, gate, began = held_back()
    with Memory() as memory:
        reader.submit(1, [ReadSpan(0, 0, 4 * PAGE, PAGE, memory.address)], urgent=False)
        assert began.wait(60)
        reader.withdraw(1)
        assert list(reader.wait(0)) == []
        gate.set()
        assert read_all(reader)[1].outcome is Outcome.WITHDRAWN
    assert reader.close()


def test_closing_leaves_a_stuck_read_behind_and_it_ends_alone() -> None:
    gate, began, left = threading.Event(), threading.Event(), threading.Event()

    def bend(number, offset, nbytes):
        began.set()
        assert gate.wait(60)
        left.set()

    drive = Drive(CONTENT, bend)
    reader = Reader(2, piece=PAGE, read=drive.read)
    memory = Memory()
    reader.submit(1, [ReadSpan(0, 0, PAGE, PAGE, memory.address)], urgent=True)
    assert began.wait(60)
    assert not reader.close(0.01)
    assert reader.close()
    gate.set()
    assert left.wait(60)


def test_sums_count_bytes_reads_and_reads_in_flight() -> None:
    drive = Drive(CONTENT)
    reader = Reader(2, piece=PAGE, read=drive.read)
    with Memory() as memory:
        reader.submit(1, [ReadSpan(0, 0, 8 * PAGE, 8 * PAGE, memory.address)], urgent=True)
        read_all(reader)
    sums = reader.sums()
    assert (sums.nbytes, sums.reads, sums.outstanding, sums.requests) == (8 * PAGE, 8, 0, 0)
    assert 0 < sums.busy_seconds <= sums.flight_seconds <= 2 * sums.busy_seconds
    assert reader.close()


def test_a_real_file_is_read_past_the_cache_or_for_the_cache_alone(tmp_path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(CONTENT)
    file = DriveFile(path, direct=True)
    reader = Reader(4, piece=2 * PAGE)
    with Memory() as memory:
        spans = [ReadSpan(file.handle, 0, 41 * PAGE, len(CONTENT), memory.address)]
        reader.submit(1, spans, urgent=True)
        assert read_all(reader)[1].outcome is Outcome.DONE
        assert memory.text(0, len(CONTENT)) == CONTENT
        reader.submit(2, [ReadSpan(file.handle, 0, PAGE, PAGE, None)], urgent=False)
        assert read_all(reader)[2].outcome is Outcome.DONE
        reader.submit(3, [ReadSpan(file.handle, 0, 41 * PAGE, 41 * PAGE, None)], urgent=False)
        assert read_all(reader)[3].outcome is Outcome.END
    assert reader.close()
    file.close()
    file.close()


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(ModelFileError, match=r"gone\.gguf cannot be read"):
        DriveFile(tmp_path / "gone.gguf", direct=True)
