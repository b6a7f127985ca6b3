"""Memory of results is lent again, and only when nobody can see it any more."""

from __future__ import annotations

import numpy as np
import pytest

from localglm.backends.cpu.results import Results

LARGE = (64, 1024)


def test_memory_of_a_result_that_is_gone_is_used_again() -> None:
    results = Results()
    first = results.empty(LARGE)
    address, held = first.ctypes.data, results.nbytes
    del first
    again = results.empty(LARGE)
    assert (again.ctypes.data, results.nbytes) == (address, held)


def test_a_view_keeps_its_memory_from_being_lent() -> None:
    results = Results()
    array = results.empty(LARGE)
    array[:] = 7.0
    view = array.reshape(-1)[100:].reshape(-1, 4)[5:]
    address = array.ctypes.data
    del array
    other = results.empty(LARGE)
    other[:] = 0.0
    assert other.ctypes.data != address
    assert (view == 7.0).all()
    del view
    assert results.empty(LARGE).ctypes.data == address


def test_two_results_never_share_memory() -> None:
    results = Results()
    held = [results.empty(LARGE) for _ in range(8)]
    for number, array in enumerate(held):
        array[:] = number
    assert [float(a.max()) for a in held] == [float(a.min()) for a in held] == list(range(8))


@pytest.mark.parametrize("shape", [(1, 8), (3, 5, 7), (16385,), (2, 33, 1000)])
def test_a_result_is_a_contiguous_float_array_of_its_shape(shape: tuple[int, ...]) -> None:
    array = Results().empty(shape)
    assert array.shape == shape
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array.flags.writeable


def test_large_results_begin_at_a_cache_line() -> None:
    results = Results()
    assert {results.empty((n, 1000)).ctypes.data % 64 for n in range(17, 40)} == {0}


def test_sizes_that_are_not_asked_for_go_back_to_the_system() -> None:
    results = Results()
    results.empty(LARGE)
    kept = results.nbytes
    for _ in range(3 * 4096):
        results.empty((4,))
    assert kept > 0
    assert results.nbytes == 0


def test_sizes_in_use_stay() -> None:
    results = Results()
    for _ in range(3 * 4096):
        results.empty(LARGE)
    assert 0 < results.nbytes < 2 * 64 * 1024 * 4
