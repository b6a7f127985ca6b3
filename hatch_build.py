"""Build hook: make the tables and compile the CPU library for the target of this wheel.

``LOCALGLM_TARGET`` names a target of ``build_tools.native``; without it the wheel is for this
machine. One machine builds every wheel, and no system compiler is used.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = "localglm/backends/cpu/_native"
_READER_PACKAGE = "localglm/experts/_native"
_TAGS = {
    "x86_64-linux-gnu.2.28": "manylinux_2_28_x86_64",
    "aarch64-linux-gnu.2.28": "manylinux_2_28_aarch64",
    "x86_64-windows-gnu": "win_amd64",
    "aarch64-macos.11.0": "macosx_11_0_arm64",
}


class NativeBuildHook(BuildHookInterface[Any]):
    """Adds the compiled library and the tables to wheels; editable installs get them in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what the wheel carries. Editable installs and wheels only; an sdist has sources."""
        if self.target_name != "wheel":
            return
        sys.path.insert(0, self.root)
        from build_tools import native, reader, tables  # noqa: PLC0415 - importable only from the root

        root = Path(self.root)
        target = os.environ.get("LOCALGLM_TARGET") or native.host_target()  # noqa: TID251
        if target not in _TAGS:
            known = ", ".join(_TAGS)
            raise SystemExit(f"LOCALGLM_TARGET={target} is not a target; known: {known}")
        archive, _ = tables.write(root)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_TAGS[target]}"
        if version == "editable":
            native.build(target)
            reader.build(target)
            return
        folder = root / "build" / "native" / target
        for package, library in (
            (_PACKAGE, native.build(target, folder)),
            (_READER_PACKAGE, reader.build(target, folder)),
        ):
            build_data["force_include"][str(library)] = f"{package}/{library.name}"
        build_data["force_include"][str(archive)] = "localglm/quant/_tables.npz"
