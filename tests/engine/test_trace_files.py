"""Files of a trace: bad ones are named before anything runs, and nothing is lost."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from localglm.engine import trace_files
from localglm.engine.devices import DeviceChoice, opened
from localglm.engine.trace import TraceRequest, trace_model
from localglm.errors import UsageError
from tests import oracle_archive as oracle

MODEL = oracle.model_path("tiny-clamp")


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", "[1.5]", "[true]", "[-1]", "[99999999999999999999]", '{"ids": "x"}', "nul",
     "[" * 100_000, "1" * 5_000, "\xff"],
)  # fmt: skip
def test_what_holds_no_ids_is_a_usage_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ids.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(UsageError) as caught:
        trace_files.read_ids(path)
    assert caught.value.why
    assert caught.value.try_


@pytest.mark.parametrize(
    "content", ["[1, 2]", '{"ids": [1, 2]}', '{"prompt": [1, 2]}', "\ufeff[1,2]"]
)
def test_every_form_of_ids_is_read(tmp_path: Path, content: str) -> None:
    path = tmp_path / "ids.json"
    path.write_text(content, encoding="utf-8")
    assert trace_files.read_ids(path) == (1, 2)


def archive(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def plain_array() -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros(3))
    return out.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"text", archive(prompt=np.array([1, 2]))[:-30], plain_array(),
     archive(prompt=np.array(3)), archive(prompt=np.array([2, 1])), archive(other=np.zeros(2)),
     archive(prompt=np.array([1, 2]), x=np.array([{}], dtype=object))],
)  # fmt: skip
def test_what_is_no_archive_of_this_prompt_is_a_usage_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "feed.npz"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        trace_files.read_feed(path, (1, 2))
    assert "pickle" not in "".join(caught.value.lines())


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("l0.attn_norm", np.zeros((4, 5), np.float32)),
        ("l0.attn_norm", np.zeros((4, 128), "U1")),
        ("l2.idx_selected", np.zeros((4, 4), np.float32)),
        ("l1.router_ids", np.full((4, 4), 99)),
        ("l1.router_ids", np.zeros((4, 3), int)),
    ],
)
def test_recorded_arrays_that_do_not_fit_are_named(name: str, array: np.ndarray) -> None:
    request = TraceRequest(ids=(1, 2, 3, 4), feed={"prompt": np.arange(4), name: array})
    with opened(DeviceChoice("cpu")) as device, pytest.raises(UsageError, match=name):
        trace_model(MODEL, request, device)


@pytest.mark.parametrize(
    "request_",
    [TraceRequest(ids=tuple([1] * 4100)), TraceRequest(ids=(1,), generate=10**9),
     TraceRequest(ids=(384,))],
)  # fmt: skip
def test_what_the_model_cannot_hold_is_refused_at_once(request_: TraceRequest) -> None:
    with opened(DeviceChoice("cpu")) as device, pytest.raises(UsageError):
        trace_model(MODEL, request_, device)


def test_places_that_cannot_be_written_are_refused_before_the_run(tmp_path: Path) -> None:
    for bad in (Path(), tmp_path, tmp_path / "none" / "a.npz", Path("/dev/null")):
        with pytest.raises(UsageError, match="cannot write"):
            trace_files.check_output(bad)
    assert trace_files.check_output(tmp_path / "a.npz") == tmp_path / "a.npz"


def test_saving_through_a_link_keeps_the_link_and_leaves_no_other_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real.npz", tmp_path / "link.npz"
    real.write_bytes(b"old")
    link.symlink_to(real)
    trace_files.save(trace_files.check_output(link), {"a": np.arange(3)})
    assert link.is_symlink()
    assert np.load(real)["a"].tolist() == [0, 1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.npz", "real.npz"]


def test_the_command_writes_the_arrays_it_names(tmp_path: Path) -> None:
    ids, out = tmp_path / "ids.json", tmp_path / "out.npz"
    ids.write_text(json.dumps(list(range(30))))
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "trace", str(MODEL), "--ids", str(ids),
         "--out", str(out), "--chunk", "7",
         "--generate", "2", "--layers", "--backend", "reference"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    with np.load(out) as arrays:
        assert arrays["logits"].shape == (30, 384)
        assert arrays["gen_logits"].shape == (2, 384)
        assert arrays["l2.idx_selected"].shape == (30, 30)
        assert f"{len(arrays.files)} arrays for 30 tokens" in done.stderr
