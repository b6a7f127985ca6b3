"""Frames and messages: what is sent arrives, what is damaged is named."""

from __future__ import annotations

import io
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localglm import errors
from localglm.engine import protocol as p
from localglm.engine.failures import to_error, to_failed
from localglm.engine.frames import MAX_FRAME_BYTES, check_size, read_frame, write_frame
from localglm.errors import WorkerError

REQUESTS: list[p.Request] = [
    p.Hello(request=1, version=1),
    p.OpenModel(request=2, path="/m.gguf", threads=3, context=4096),
    p.Generate(
        request=3,
        prompt=p.ChatPrompt((p.Message(role="user", content="hi"),), "low"),
        sampling=p.Sampling(top_k=4, seed=2**63 - 1),
        stop=("a", "b"),
    ),
    p.Generate(request=4, prompt=p.IdsPrompt((1, 2)), max_tokens=5, ignore_end=True),
    p.Generate(request=5, prompt=p.TextPrompt("x", special=True)),
    p.Generate(request=6, prompt=p.RandomPrompt(9, 1), step_times=True),
    p.SetBudget(request=7, target=3, tokens=None),
    p.Drop(request=8, handle="main#1"),
]


class OneByte(io.BytesIO):
    """A stream that gives one byte at a time, as a slow pipe may."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(1, size) if size and size > 0 else size)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: type(r).__name__)
def test_a_request_arrives_as_it_was_sent(request_: p.Request) -> None:
    stream = OneByte()
    write_frame(stream, p.encode(request_))
    stream.seek(0)
    payload = read_frame(stream)
    assert payload is not None
    assert p.decode_request(payload) == request_
    assert read_frame(stream) is None


def test_an_event_is_no_request() -> None:
    beat = p.encode(p.Beat(request=1, stage="s", ticks=2))
    assert p.decode_event(beat) == p.Beat(request=1, stage="s", ticks=2)
    with pytest.raises(WorkerError, match="malformed request"):
        p.decode_request(beat)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x05\x00", "ended inside"),
        (b"\x05\x00\x00\x00abc", "ended inside"),
        (b"\x00\x00\x00\x00", "a frame of 0 bytes"),
        (b"\xff\xff\xff\xff" + b"x" * 20, "a frame of 4294967295 bytes"),
        (b"hello, this is no frame", "a frame of"),
    ],
)
def test_a_damaged_stream_is_a_worker_error(data: bytes, what: str) -> None:
    with pytest.raises(WorkerError, match=what):
        read_frame(io.BytesIO(data))


def test_a_message_larger_than_a_frame_is_refused_before_it_is_sent() -> None:
    check_size(b"x" * 10)
    with pytest.raises(WorkerError, match="cannot be sent"):
        check_size(bytes(MAX_FRAME_BYTES + 1))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_random_bytes_are_a_message_or_a_worker_error(data: bytes) -> None:
    for decode in (p.decode_event, p.decode_request):
        try:
            message = decode(data)
        except WorkerError as error:
            assert "malformed" in error.what
        else:
            assert decode(p.encode(message)) == message


def test_a_wrong_field_type_is_named() -> None:
    payload = msgspec.msgpack.encode({"type": "cancel", "request": 1, "target": "x"})
    with pytest.raises(WorkerError) as caught:
        p.decode_request(payload)
    assert "target" in caught.value.why


def test_another_version_is_refused_naming_both() -> None:
    p.check_version(p.PROTOCOL_VERSION)
    with pytest.raises(WorkerError, match=f"protocol 99, this one {p.PROTOCOL_VERSION}"):
        p.check_version(99)


@pytest.mark.parametrize("kind", ["ModelFileError", "UsageError", "NumericFaultError"])
def test_an_error_crosses_the_boundary_with_its_class_and_parts(kind: str) -> None:
    error = getattr(errors, kind)("what", why="why", try_="try")
    back = to_error(to_failed(3, error))
    assert type(back) is type(error)
    assert (back.what, back.why, back.try_) == ("what", "why", "try")


def test_a_name_that_is_no_error_of_ours_becomes_a_request_error() -> None:
    event = p.Failed(request=1, kind="TYPE_CHECKING", what="w", why="", try_="")
    assert type(to_error(event)) is errors.RequestError


def test_memory_and_foreign_errors_are_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    assert to_failed(1, MemoryError()).kind == "MemoryShortError"
    failed = to_failed(1, KeyError("x"))
    assert failed.kind == "RequestError"
    assert "KeyError" in failed.what
    assert "KeyError" in capsys.readouterr().err


def test_a_front_end_imports_neither_numpy_nor_the_model() -> None:
    code = (
        "import sys, localglm.engine.client\n"
        "heavy = {'numpy', 'torch', 'wgpu', 'pyopencl', 'textual', 'localglm.model.graph'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
