"""Every directory the program may touch. Nothing is created here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs


def settings_file(variables: Mapping[str, str]) -> Path:
    """Return the settings file: ``LOCALGLM_CONFIG``, or config.toml in the user's config folder."""
    named = variables.get("LOCALGLM_CONFIG")
    if named:
        return Path(named).absolute()
    return platformdirs.user_config_path("localglm", appauthor=False) / "config.toml"


def log_folder() -> Path:
    """Return the folder for logs."""
    return platformdirs.user_log_path("localglm", appauthor=False)
