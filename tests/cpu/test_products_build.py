"""The build of the native library: when it runs, what it leaves behind, how it fails."""

import ctypes

import pytest

from build_tools import native
from build_tools.native import BuildError, build, host_target


def test_a_second_build_changes_nothing() -> None:
    library = build()
    before = library.stat().st_mtime_ns
    assert build() == library
    assert library.stat().st_mtime_ns == before


def test_a_stamp_of_other_sources_builds_again(tmp_path) -> None:
    library = build(out_dir=tmp_path)
    stamp = tmp_path / (library.name + ".stamp")
    first, made = stamp.read_text(), library.stat().st_mtime_ns
    stamp.write_text("another state")
    assert build(out_dir=tmp_path) == library
    assert stamp.read_text() == first
    assert library.stat().st_mtime_ns > made
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([library.name, stamp.name])
    assert ctypes.CDLL(str(library)).lg_isa_supported(0) == 1


def test_every_source_takes_part_in_the_stamp(tmp_path, monkeypatch) -> None:
    target = native.TARGETS[host_target()]
    before = native._digest(target)
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for path in native.SOURCE.rglob("*.[ch]"):
        copy = tmp_path / path.relative_to(native.SOURCE)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(native, "SOURCE", tmp_path)
    assert native._digest(target) == before
    (kernels / "dot_sum.h").write_bytes((kernels / "dot_sum.h").read_bytes() + b"\n")
    assert native._digest(target) != before


def test_an_unknown_target_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BuildError, match=r"sparc-solaris.*x86_64-windows-gnu"):
        build("sparc-solaris")


def test_a_compiler_error_reaches_the_caller(tmp_path, monkeypatch) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "broken.c").write_text("int f(void) { return misspelt; }\n")
    monkeypatch.setattr(native, "SOURCE", tmp_path)
    with pytest.raises(BuildError, match="misspelt"):
        build(out_dir=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
