"""The 256 printable stand-ins that byte-level vocabularies use for byte values."""

from __future__ import annotations


def byte_characters() -> dict[int, str]:
    """Return the character of every byte value.

    Math: printable bytes of Latin-1 (33-126, 161-172, 174-255) stand for themselves; the other 68,
    in rising order, become U+0100, U+0101, ...
    """
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {
        byte: chr(256 + place) for place, byte in enumerate(hidden)
    }


def token_bytes(text: str, values: dict[str, int]) -> bytes:
    """Return the bytes a token's text stands for; a text outside the alphabet is itself.

    ``values`` is the reverse of ``byte_characters()``.
    """
    try:
        return bytes([values[character] for character in text])
    except KeyError:
        return text.encode("utf-8", "replace")
