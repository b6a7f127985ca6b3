"""A home of mapped experts: their own memory, read once before it is lent."""

from __future__ import annotations

import errno
import threading

import numpy as np
import pytest

from localglm.backends.cpu.device import CpuDevice
from localglm.errors import ModelFileError
from localglm.experts import open_mapped_home
from localglm.experts.mapped import MappedHome
from localglm.experts.streamed import StreamedOptions
from localglm.gguf import open_model
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.load import load_surveyed
from tests import oracle_archive as oracle
from tests.experts.drives import EXPERTS, Drive, borrow, make_layout, truth, write_files


def make_mapped(folder, drive=None, **options):
    layout, contents = make_layout()
    if drive is not None:
        drive.content = contents[0]
        options["read"] = drive.read
    whole = np.frombuffer(contents[0], np.uint8)
    stacks = {
        number: tuple(
            whole[part.offset : part.offset + EXPERTS * part.nbytes] for part in layer.first
        )
        for number, layer in layout.layers.items()
    }
    paths = write_files(folder, contents)
    return MappedHome(layout, paths, stacks, StreamedOptions(2, **options)), stacks


def test_the_mapped_bytes_are_lent_and_read_only_once(tmp_path) -> None:
    drive = Drive(b"")
    home, stacks = make_mapped(tmp_path, drive)
    for _ in range(3):
        home.expect(2, [0, 5], certain=True)
        assert borrow(home, 2, [0, 5])[0] == truth(2, [0, 5])
    (some,) = home.lend(2, [5])
    assert np.shares_memory(some[0].gate, stacks[2][0]), "no copy"
    assert len(drive.calls) == 6, "two experts of three parts"
    stats = home.statistics()
    assert (stats.hits, stats.foreseen, stats.misses, stats.slots) == (5, 0, 2, 2)
    home.close()


def test_an_expert_is_not_lent_before_it_was_read(tmp_path) -> None:
    gate = threading.Event()
    drive = Drive(b"", lambda number, offset, nbytes: None if gate.wait(60) else 0)
    home, _ = make_mapped(tmp_path, drive, patience=0.05)
    with pytest.raises(ModelFileError, match="the drive does not answer"):
        borrow(home, 2, [0])
    gate.set()
    assert borrow(home, 2, [0])[0] == truth(2, [0])
    home.close()


def test_guesses_are_read_behind_and_counted(tmp_path) -> None:
    home, _ = make_mapped(tmp_path)
    home.expect(3, [1, 2], certain=False)
    assert borrow(home, 3, [1, 4])[0] == truth(3, [1, 4])
    stats = home.statistics()
    assert (stats.hits, stats.foreseen, stats.misses, stats.guess_rate) == (0, 1, 1, 0.5)
    home.close()


def test_a_fault_is_an_error_and_the_next_request_reads_again(tmp_path) -> None:
    broken = threading.Event()
    broken.set()
    drive = Drive(b"", lambda n, at, size: OSError(errno.EIO, "") if broken.is_set() else None)
    home, _ = make_mapped(tmp_path, drive)
    home.expect(5, [7], certain=True)
    with pytest.raises(ModelFileError, match="of expert 7 in layer 5 cannot be read"):
        borrow(home, 5, [7])
    broken.clear()
    assert borrow(home, 5, [7])[0] == truth(5, [7])
    home.close()


def test_a_model_computes_the_same_bits_with_it() -> None:
    file = open_model(oracle.model_path("tiny-upstream"))
    found = survey(file)
    rows = []
    for home in (None, open_mapped_home(file, found, depth=4)):
        device = CpuDevice(2)
        geometry, weights = load_surveyed(file, found, device, home=home)
        model = Model(geometry, weights, device)
        rows.append(model.forward(model.new_state(context=16), [3, 1, 4, 1, 5]).tobytes())
        device.close()
        if home is not None:
            assert home.statistics().misses > 0
            home.close()
    assert rows[0] == rows[1]
    file.close()
