"""The worker pool of the native library: every item once, asleep when idle, gone when destroyed."""

import ctypes
import platform
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from tests.cpu.products_library import BY_NAME, open_library, products

LIBRARY = open_library()
TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int)
LIBRARY.lg_pool_run.argtypes = [
    ctypes.c_void_p,
    TASK,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
]


@contextmanager
def pool_of(threads):
    pool = LIBRARY.lg_pool_create(threads)
    assert pool
    try:
        yield pool
    finally:
        LIBRARY.lg_pool_destroy(pool)


def pieces_of(pool, count, grain):
    """Run once and return (begin, end, worker, thread) of each call of the task."""
    seen = []

    def note(_context, begin, end, worker):
        seen.append((begin, end, worker, threading.get_ident()))

    LIBRARY.lg_pool_run(pool, TASK(note), None, count, grain)
    return seen


def items_of(seen):
    return sorted(item for begin, end, *_ in seen for item in range(begin, end))


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
@pytest.mark.parametrize(("count", "grain"), [(1, 1), (7, 3), (64, 1), (100, 7), (5, 1000)])
def test_every_item_is_done_once_before_the_run_returns(threads, count, grain) -> None:
    with pool_of(threads) as pool:
        seen = pieces_of(pool, count, grain)
    assert items_of(seen) == list(range(count))
    assert all(0 < end - begin <= grain for begin, end, *_ in seen)


def test_nothing_runs_for_no_items() -> None:
    with pool_of(3) as pool:
        assert pieces_of(pool, 0, 1) == []


def test_many_small_runs_lose_and_repeat_nothing() -> None:
    counts = np.random.default_rng(0).integers(1, 12, 1500).tolist()
    with pool_of(4) as pool:
        assert all(items_of(pieces_of(pool, n, 1)) == list(range(n)) for n in counts)


def test_a_worker_number_belongs_to_one_thread_and_the_caller_is_worker_zero() -> None:
    owners = {}
    with pool_of(3) as pool:
        assert LIBRARY.lg_pool_threads(pool) == 3
        for _ in range(200):
            for _begin, _end, worker, thread in pieces_of(pool, 12, 1):
                owners.setdefault(worker, set()).add(thread)
    assert set(owners) <= {0, 1, 2}
    assert owners[0] == {threading.get_ident()}
    assert all(len(threads) == 1 for threads in owners.values())
    assert len(set().union(*owners.values())) == len(owners)


def test_two_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=20)
    with pool_of(2) as pool:
        met = []

        def meet(_context, begin, _end, _worker):
            meeting.wait()
            met.append(begin)

        LIBRARY.lg_pool_run(pool, TASK(meet), None, 2, 1)
    assert sorted(met) == [0, 1]


def test_callers_from_several_threads_take_turns() -> None:
    results = {}
    with pool_of(3) as pool:

        def call(name):
            results[name] = [items_of(pieces_of(pool, 20, 1)) for _ in range(50)]

        callers = [threading.Thread(target=call, args=(n,)) for n in range(4)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(timeout=60)
    assert results == {n: [list(range(20))] * 50 for n in range(4)}


def test_pools_come_and_go_without_leaving_threads() -> None:
    process = psutil.Process()
    before = process.num_threads()
    for turn in range(200):
        with pool_of(1 + turn % 5) as pool:
            if turn % 2:
                assert items_of(pieces_of(pool, 3, 1)) == [0, 1, 2]
    # The system may list a joined thread for a moment longer.
    deadline = time.monotonic() + 20
    while process.num_threads() > before and time.monotonic() < deadline:
        pass
    resting = process.num_threads()
    assert resting <= before
    with pool_of(4):
        assert process.num_threads() >= resting + 3


def test_no_pool_has_less_than_one_thread() -> None:
    assert LIBRARY.lg_pool_create(0) is None
    assert LIBRARY.lg_pool_create(-2) is None


def used_while_waiting(seconds):
    before = time.process_time()
    threading.Event().wait(seconds)
    return time.process_time() - before


def test_idle_workers_use_no_processor_time() -> None:
    with pool_of(8) as pool:
        pieces_of(pool, 64, 1)
        idle = used_while_waiting(0.4)
        stop = threading.Event()

        def spin(_context, _begin, _end, _worker):
            while not stop.is_set():
                pass

        busy = threading.Thread(target=LIBRARY.lg_pool_run, args=(pool, TASK(spin), None, 2, 1))
        busy.start()
        spinning = used_while_waiting(0.4)
        stop.set()
        busy.join(timeout=20)
    assert idle < 0.05
    assert spinning > 0.1


if sys.platform == "linux" and platform.machine() == "x86_64":
    MXCSR = 28  # byte offset in fenv_t of this system
    FLUSHING = 0x8040  # flush results to zero, read subnormals as zero

    @contextmanager
    def flushing_subnormals():
        libm = ctypes.CDLL("libm.so.6")
        saved, changed = (ctypes.c_uint8 * 64)(), (ctypes.c_uint8 * 64)()
        libm.fegetenv(saved)
        ctypes.memmove(changed, saved, 64)
        mode = ctypes.c_uint32.from_buffer(changed, MXCSR)
        mode.value |= FLUSHING
        libm.fesetenv(changed)
        try:
            yield
        finally:
            libm.fesetenv(saved)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_a_caller_that_flushes_subnormals_gets_the_same_bits(threads) -> None:
        tiny = np.full((40, 64), np.float32(1e-42))
        x = np.ones((2, 64), np.float32)
        with products(LIBRARY, "portable", threads) as use, flushing_subnormals():
            flushed = tiny[0] * x[0]
            code, y = use.matmul(BY_NAME["F32"], tiny.view(np.uint8), x)
            after = tiny[0] * x[0]
        assert code == 0
        assert not flushed.any()
        assert not after.any()
        assert (y == np.float32(64 * np.float64(np.float32(1e-42)))).all()
