"""Length-prefixed frames over a byte stream: four bytes little-endian length, then that many bytes.

Knows nothing of what a frame means. A length that no message of ours can have ends the stream with
an error instead of an allocation.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from localglm.errors import WorkerError

MAX_FRAME_BYTES = 64 * 2**20
_HEADER = struct.Struct("<I")


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Write one frame and flush it.

    Raises: WorkerError when the payload is empty or longer than the protocol allows.
    """
    check_size(payload)
    stream.write(_HEADER.pack(len(payload)) + payload)
    stream.flush()


def check_size(payload: bytes) -> None:
    """Refuse a payload that no frame holds.

    Raises: WorkerError naming the size and the limit.
    """
    if not 0 < len(payload) <= MAX_FRAME_BYTES:
        raise WorkerError(
            f"a message of {len(payload)} bytes cannot be sent to the engine",
            why=f"a frame holds 1 to {MAX_FRAME_BYTES} bytes",
            try_="send a shorter prompt",
        )


def read_frame(stream: BinaryIO) -> bytes | None:
    """Read one frame; None at a clean end of the stream.

    Raises: WorkerError when the stream ends inside a frame or the length is out of range.
    """
    header = _read_up_to(stream, _HEADER.size)
    if not header:
        return None
    if len(header) < _HEADER.size:
        raise _cut_off(len(header), _HEADER.size)
    (length,) = _HEADER.unpack(header)
    if not 0 < length <= MAX_FRAME_BYTES:
        raise WorkerError(
            f"the engine's message stream is damaged: a frame of {length} bytes",
            why=f"a frame holds 1 to {MAX_FRAME_BYTES} bytes; something else wrote to the pipe",
            try_="repeat the request; the engine is started again",
        )
    payload = _read_up_to(stream, length)
    if len(payload) < length:
        raise _cut_off(len(payload), length)
    return payload


def _read_up_to(stream: BinaryIO, count: int) -> bytes:
    parts: list[bytes] = []
    missing = count
    while missing:
        part = stream.read(missing)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _cut_off(got: int, wanted: int) -> WorkerError:
    return WorkerError(
        "the engine's message stream ended inside a message",
        why=f"{got} of {wanted} bytes arrived",
        try_="repeat the request; the engine is started again",
    )
