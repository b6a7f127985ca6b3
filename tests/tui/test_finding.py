"""What is found on disk for the first screen."""

from __future__ import annotations

from pathlib import Path

from localglm.tui.finding import models


def test_models_are_found_once_largest_first_with_the_demo_last(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    sizes = {"small.gguf": 1, "sub/large.gguf": 9, "other.bin": 5}
    sizes |= {"split-00001-of-00002.gguf": 4, "split-00002-of-00002.gguf": 4}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    names = [model.name for model in models([tmp_path, tmp_path, tmp_path / "nowhere"])]
    assert names == ["large.gguf", "split-00001-of-00002.gguf", "small.gguf", "demo"]
