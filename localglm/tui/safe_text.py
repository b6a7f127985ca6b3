"""Making foreign text harmless on a screen: nothing in it steers a terminal or reorders a line.

Every character that is not shown as itself is shown as a sign, so nothing disappears unseen.
"""

from __future__ import annotations

import re

_REPLACED = "\ufffd"
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_PILED = re.compile(r"([\u0300-\u036f\u0483-\u0489\u20d0-\u20ff\ufe00-\ufe0f]{4})"
                    r"[\u0300-\u036f\u0483-\u0489\u20d0-\u20ff\ufe00-\ufe0f]+")  # fmt: skip
TAB = "    "


def shown(text: str) -> str:
    """Return text a terminal only ever prints; line feeds stay, tabs become four spaces."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\t", TAB)
    return _PILED.sub(r"\1", _UNSAFE.sub(_sign, text))


def one_line(text: str, most: int = 80) -> str:
    """Return the beginning of a text on a single line, for titles and lists."""
    line = " ".join(shown(text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def typed(text: str) -> str:
    """Return pasted or read text as it may stand in the prompt: no control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", TAB)
    return _UNSAFE.sub("", text)


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else _REPLACED
