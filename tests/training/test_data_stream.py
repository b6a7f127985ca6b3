"""Batches: what the arrays mean, that they repeat, and that workers come and go cleanly."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import psutil
import pytest

from training.data.stream import BatchMaker, Phase, StreamConfig, open_stream
from training.data.vocabulary import IDS, PADDING

START = IDS["[gMASK]"]


def config(**changes) -> StreamConfig:
    base = {
        "seed": 5, "workers": 2, "batch_tokens": 4096, "phases": (Phase(0, {512: 1.0, 2048: 1.0}),),
    }  # fmt: skip
    return StreamConfig(**(base | changes))


def test_every_segment_is_one_whole_conversation_on_the_grid():
    for align in (1, 4, 16):
        batch = BatchMaker(config(align=align)).batch(3)
        for tokens, segment in zip(batch.tokens, batch.segment, strict=True):
            starts = [0, *(np.flatnonzero(np.diff(segment)) + 1).tolist()]
            assert [place % align for place in starts] == [0] * len(starts)
            assert np.flatnonzero(tokens == START).tolist() == starts
            assert sorted(set(np.diff(segment).tolist())) in ([0], [0, 1])
            ends = [*starts[1:], len(tokens)]
            for start, end in zip(starts, ends, strict=True):
                written = tokens[start:end][tokens[start:end] != PADDING]
                assert written[-1] in {IDS["<|user|>"], IDS["<|observation|>"]}


def test_loss_is_zero_on_padding_and_at_starts():
    batch = BatchMaker(config(prompt_weight=0.25, align=16)).batch(1)
    assert set(np.unique(batch.loss).tolist()) == {0.0, 0.25, 1.0}
    assert not batch.loss[batch.tokens == PADDING].any()
    assert not batch.loss[batch.tokens == START].any()
    inner = (batch.tokens != PADDING) & (batch.tokens != START)
    assert (batch.loss[inner] > 0).all()


def test_shapes_and_types_are_as_promised():
    for number in range(6):
        batch = BatchMaker(config()).batch(number)
        assert batch.tokens.size == 4096
        assert batch.tokens.shape == batch.loss.shape == batch.segment.shape
        assert batch.tokens.shape[1] in {512, 2048}
        assert (batch.tokens.dtype, batch.loss.dtype, batch.segment.dtype) == (
            np.int32, np.float32, np.int32,
        )  # fmt: skip
        assert [len(names) for names in batch.kinds] == (batch.segment[:, -1] + 1).tolist()
        assert batch.loss.sum() > 0.05 * batch.loss.size


def test_a_later_phase_brings_longer_rows():
    maker = BatchMaker(config(phases=(Phase(0, {512: 1.0}), Phase(4, {4096: 1.0}))))
    assert [maker.batch(n).tokens.shape[1] for n in (0, 3, 4, 9)] == [512, 512, 4096, 4096]


def test_workers_give_the_batches_of_one_process_in_order():
    alone = BatchMaker(config())
    stream = open_stream(config(start=1, stop=6))
    got = list(stream)
    assert [batch.number for batch in got] == [1, 2, 3, 4, 5]
    for batch in got:
        expected = alone.batch(batch.number)
        assert np.array_equal(batch.tokens, expected.tokens)
        assert np.array_equal(batch.loss, expected.loss)
        assert np.array_equal(batch.segment, expected.segment)
    other = BatchMaker(config(seed=6)).batch(1)
    assert not np.array_equal(got[0].tokens, other.tokens)


def test_closing_the_stream_ends_the_workers():
    before = set(psutil.Process().children())
    stream = open_stream(config())
    assert len(list(islice(stream, 2))) == 2
    started = set(psutil.Process().children()) - before
    assert len(started) == 2
    stream.close()
    assert not any(child.is_running() for child in started)


def test_a_worker_that_dies_is_reported():
    before = set(psutil.Process().children())
    stream = open_stream(config(workers=1))
    next(stream)
    for child in set(psutil.Process().children()) - before:
        child.kill()
    with pytest.raises(RuntimeError, match="data worker ended with -9"):
        list(islice(stream, 50))


def test_a_worker_imports_no_more_than_it_needs():
    code = (
        "import sys, training.data.worker; print('torch' in sys.modules, 'localglm' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True)
    assert out.stdout.split() == [b"False", b"False"]
