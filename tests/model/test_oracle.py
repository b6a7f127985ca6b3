"""The model against the oracle: five tiny files, every recorded array."""

from __future__ import annotations

import numpy as np
import pytest

from localglm.engine.devices import DeviceChoice, opened
from localglm.engine.trace import TraceRequest, trace_model
from tests import oracle_archive as oracle


def trace(name: str, choice: DeviceChoice, **options: object) -> dict[str, np.ndarray]:
    archive = oracle.Archive.load(name)
    request = TraceRequest(
        ids=tuple(archive.arrays["prompt"].tolist()),
        generate=len(archive.arrays["gen_ids"]),
        layers=True,
        **options,
    )
    with opened(choice) as device:
        return trace_model(oracle.model_path(name), request, device)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_the_reference_reproduces_every_array(name: str) -> None:
    got = trace(name, DeviceChoice("reference"))
    assert oracle.mismatches(oracle.Archive.load(name), got) == []


@pytest.mark.parametrize("name", ["tiny-f32", "tiny-upstream", "tiny-clamp"])
def test_the_cpu_reproduces_every_array_of_float_files(name: str) -> None:
    got = trace(name, DeviceChoice("cpu"))
    assert oracle.mismatches(oracle.Archive.load(name), got) == []


def test_the_cpu_stays_within_the_8_bit_rows_end_to_end() -> None:
    archive = oracle.Archive.load("tiny-q8_0")
    got = trace("tiny-q8_0", DeviceChoice("cpu"))
    want, mine = archive.want_and_got("logits", got["logits"])
    errors = oracle.row_errors(want, mine)
    assert np.median(errors) < 0.06
    assert errors.max() < 0.15
    assert (want.argmax(axis=1) == mine.argmax(axis=1)).mean() >= 0.85


def test_isolated_sublayers_of_every_storage_type_stay_within_the_8_bit_rows() -> None:
    archive = oracle.Archive.load("tiny-kquants")
    got = trace("tiny-kquants", DeviceChoice("cpu"), feed=archive.arrays)
    for name in archive.names():
        if name.endswith(("attn_out", "ffn_out")):
            errors = oracle.row_errors(*archive.want_and_got(name, got[name]))
            # The draft block's norms are not recorded, so its rows carry the noise of two steps.
            assert np.median(errors) < (0.025 if name.startswith("mtp") else 0.02), name
            assert errors.max() < 0.08, name


def test_exact_activations_reproduce_every_array_of_every_storage_type() -> None:
    got = trace("tiny-kquants", DeviceChoice("cpu", exact_activations=True))
    assert oracle.mismatches(oracle.Archive.load("tiny-kquants"), got) == []


def test_the_comparison_notices_a_wrong_prompt() -> None:
    archive = oracle.Archive.load("tiny-clamp")
    ids = archive.arrays["prompt"][::-1]
    with opened(DeviceChoice("reference")) as device:
        request = TraceRequest(ids=tuple(ids.tolist()), generate=2)
        got = trace_model(oracle.model_path("tiny-clamp"), request, device)
    assert any(m.startswith("logits") for m in oracle.mismatches(archive, got))
