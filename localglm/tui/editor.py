"""Writing a text in the editor the user has chosen."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from localglm.errors import UsageError
from localglm.settings.load import environment


def edited(text: str) -> str:
    """Open ``text`` in $VISUAL or $EDITOR and return what was saved.

    Raises: UsageError when the editor does not start or fails.
    """
    variables = environment()
    named = variables.get("VISUAL") or variables.get("EDITOR")
    command = named or ("notepad" if sys.platform == "win32" else "vi")
    with tempfile.TemporaryDirectory(prefix="localglm-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        try:
            words = shlex.split(command, posix=sys.platform != "win32")
            subprocess.run([*words, str(file)], check=True)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise UsageError(
                f"the editor {command} did not work",
                why=str(error),
                try_="set VISUAL to an editor that runs in this terminal",
            ) from error
        return file.read_text(encoding="utf-8", errors="replace").rstrip("\n")
