"""What was open when the program was left, in one small file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localglm import paths
from localglm.tui.begin import Last

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_FLAGS: Mapping[str, Any] = {
    "system": None,
    "stop": (),
    "thinking_budget": None,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "show_thinking": False,
}


def _last_file() -> Path:
    return paths.data_folder() / "last.json"


def read_last() -> Last:
    """Return what was open last; nothing where that cannot be told or is gone."""
    try:
        data = json.loads(_last_file().read_text(encoding="utf-8"))
        model, chat = Path(data["model"]), data["chat"]
    except (OSError, ValueError, KeyError, TypeError):
        return Last()
    if not model.exists():
        return Last()
    return Last(model, chat if isinstance(chat, int) else None)


def keep_last(last: Last) -> None:
    """Remember what is open; a folder that cannot be written only means to choose again."""
    file = _last_file()
    new = file.with_name(f"{file.name}.{os.getpid()}")
    text = json.dumps({"model": str(Path(last.model or "").absolute()), "chat": last.chat})
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    except OSError:
        return
