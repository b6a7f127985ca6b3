"""Every directory the program may touch. Nothing is created here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from localglm.errors import ModelFileError


def settings_file(variables: Mapping[str, str]) -> Path:
    """Return the settings file: ``LOCALGLM_CONFIG``, or config.toml in the user's config folder."""
    named = variables.get("LOCALGLM_CONFIG")
    if named:
        return Path(named).absolute()
    return platformdirs.user_config_path("localglm", appauthor=False) / "config.toml"


def log_folder() -> Path:
    """Return the folder for logs."""
    return platformdirs.user_log_path("localglm", appauthor=False)


def data_folder() -> Path:
    """Return the folder for what the program has learnt about this machine."""
    return platformdirs.user_data_path("localglm", appauthor=False)


def demo_model() -> Path:
    """Return the demonstration model that comes with the program.

    Raises: ModelFileError when this build carries none.
    """
    path = Path(__file__).parent / "demo" / "demo.gguf"
    if not path.is_file():
        raise ModelFileError(
            "the demonstration model is missing",
            why=f"{path} is not there",
            try_="reinstall localglm, or name a GGUF file",
        )
    return path
