"""The same bits whatever the instruction set, the threads and the chunks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from localglm.arrays import AnyArray
from localglm.backends.cpu.device import CpuDevice
from localglm.backends.cpu.library import ISA_IDS, library_path, load
from tests.cpu.ops_bits_cases import CASES, TOKENS

WHOLE = (TOKENS,)
NAMES = sorted(CASES)
NATIVE = load(library_path())
RUNS_HERE = [isa for isa, number in ISA_IDS.items() if NATIVE.lg_isa_supported(number)]


@pytest.fixture(scope="module")
def one_thread() -> Iterator[CpuDevice]:
    device = CpuDevice(threads=1)
    yield device
    device.close()


def bits(arrays: list[AnyArray]) -> list[bytes]:
    """Bytes of arrays; every NaN reads the same, as the contract leaves its payload open."""
    out = []
    for array in arrays:
        fixed = array.copy()
        if fixed.dtype.kind == "f":
            fixed[np.isnan(fixed)] = np.nan
        out.append(fixed.tobytes())
    return out


@pytest.mark.parametrize("isa", RUNS_HERE)
@pytest.mark.parametrize("name", NAMES)
def test_all_kernels_give_the_bits_of_the_best_ones(
    name: str, isa: str, one_thread: CpuDevice
) -> None:
    other = CpuDevice(threads=1, isa=isa)
    want = bits(CASES[name](one_thread, WHOLE))
    assert bits(CASES[name](other, WHOLE)) == want
    other.close()


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_change_a_bit(name: str, threads: int, one_thread: CpuDevice) -> None:
    several = CpuDevice(threads=threads)
    want = bits(CASES[name](one_thread, WHOLE))
    assert bits(CASES[name](several, WHOLE)) == want
    several.close()


@pytest.mark.parametrize("cut", [(1, 16), (7, 10), (16, 1), (2, 2, 13), (1,) * TOKENS], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_chunks_do_not_change_a_bit(name: str, cut: tuple[int, ...], one_thread: CpuDevice) -> None:
    assert bits(CASES[name](one_thread, cut)) == bits(CASES[name](one_thread, WHOLE))


def test_the_comparison_sees_one_unit_in_the_last_place(one_thread: CpuDevice) -> None:
    right = CASES["norms 33"](one_thread, WHOLE)
    wrong = [a.copy() for a in right]
    wrong[0][2, 3] = np.nextafter(wrong[0][2, 3], np.float32(np.inf))
    assert bits(wrong) != bits(right)


def test_a_chunk_that_forgets_its_state_is_seen(one_thread: CpuDevice) -> None:
    # Two runs of the first 8 tokens: what a chunk would give if the state did not move on.
    run = CASES["kda 3x21x5"]
    head, whole = run(one_thread, (8,)), run(one_thread, WHOLE)
    assert bits([head[2]]) == bits([whole[2][:8]])
    assert bits([head[2]]) != bits([whole[2][8:16]])
    assert bits([head[-1]]) != bits([whole[-1]])


def test_the_portable_device_is_really_portable() -> None:
    device = CpuDevice(threads=1, isa="portable")
    assert device.isa == "portable"
    device.close()
