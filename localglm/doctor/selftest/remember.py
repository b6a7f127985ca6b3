"""The last self-test of this version, library, device and driver, kept in the data folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import msgspec

import localglm
from localglm.doctor.selftest.record import Card, SelfTest
from localglm.paths import data_folder

_LARGEST = 1 << 20


def key(backend: str, card: Card) -> str:
    """Return what a result belongs to; another version, library, device or driver changes it."""
    digest = hashlib.sha256()
    for text in (localglm.__version__, backend, card.name, card.driver, card.device or ""):
        digest.update(text.encode() + b"\0")
    package = Path(localglm.__file__).resolve().parent / "backends" / backend
    for path in sorted(package.rglob("*")):
        if path.is_file() and not {"__pycache__", "cache"} & set(path.parts[len(package.parts) :]):
            digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def remembered(backend: str, card: Card, folder: Path | None = None) -> SelfTest | None:
    """Return the kept result for exactly this device; None when there is none that can be read."""
    path = _file(backend, card, folder)
    try:
        if path.stat().st_size > _LARGEST:
            return None
        found = msgspec.json.decode(path.read_bytes(), type=SelfTest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if (found.backend, found.card) == (backend, card) else None


def keep(test: SelfTest, folder: Path | None = None) -> bool:
    """Keep a result that ran to its end; False when it was stopped or cannot be written.

    A full test is not replaced by a quick one that agrees with it.
    """
    if test.verdict == "stopped":
        return False
    path = _file(test.backend, test.card, folder)
    before = remembered(test.backend, test.card, folder)
    agrees = before is not None and (before.level, before.verdict) == ("full", test.verdict)
    if agrees and test.level == "quick":
        return True
    return _replace(path, msgspec.json.encode(test))


def _replace(path: Path, content: bytes) -> bool:
    part: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        part.replace(path)
    except OSError:
        if part is not None:
            part.unlink(missing_ok=True)
        return False
    return True


def _file(backend: str, card: Card, folder: Path | None) -> Path:
    return (folder or data_folder()) / "self-test" / f"{key(backend, card)}.json"
