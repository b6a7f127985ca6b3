"""Compile the CPU library with zig: csrc/ once, csrc/kernels/ once per instruction set.

Writes only below localglm/backends/cpu/_native (and csrc/generated, through
``build_tools.tables``). A stamp beside the library holds the hash of everything that went into
it; a build whose stamp matches returns at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CPU = ROOT / "localglm" / "backends" / "cpu"
SOURCE = CPU / "csrc"
TABLES = SOURCE / "generated" / "lg_tables.h"
MAKES_TABLES = ROOT / "build_tools" / "tables.py"
NATIVE = CPU / "_native"

FLAGS = (
    "-O3",
    "-std=c11",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-sanitize=undefined",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
)


@dataclass(frozen=True, slots=True)
class Target:
    """A system to build for: the file's name and the processor of each set of kernels."""

    triple: str
    library: str
    processors: tuple[tuple[str, str], ...]
    position_independent: bool


_X86 = (
    ("portable", "x86_64"),
    ("avx2", "x86_64_v3"),
    ("avx512", "x86_64_v4+avx512vnni+avx512vbmi+gfni"),
)
_ARM = (("portable", "generic"), ("neon", "generic+v8_2a+dotprod"))
TARGETS = {
    target.triple: target
    for target in (
        Target("x86_64-linux-gnu.2.28", "liblocalglm_cpu.so", _X86, position_independent=True),
        Target("aarch64-linux-gnu.2.28", "liblocalglm_cpu.so", _ARM, position_independent=True),
        Target("x86_64-windows-gnu", "localglm_cpu.dll", _X86, position_independent=False),
        Target("aarch64-macos.11.0", "liblocalglm_cpu.dylib", _ARM, position_independent=True),
    )
}
_HOSTS = {
    ("Linux", "x86_64"): "x86_64-linux-gnu.2.28",
    ("Linux", "aarch64"): "aarch64-linux-gnu.2.28",
    ("Windows", "AMD64"): "x86_64-windows-gnu",
    ("Darwin", "arm64"): "aarch64-macos.11.0",
}


class BuildError(Exception):
    """The library cannot be built; the text says why."""


def host_target() -> str:
    """Return the target of this machine."""
    host = (platform.system(), platform.machine())
    if host not in _HOSTS:
        raise BuildError(f"no CPU library for {host[0]} on {host[1]}; known: {', '.join(TARGETS)}")
    return _HOSTS[host]


def build(target: str | None = None, out_dir: Path | None = None) -> Path:
    """Build the library for ``target`` (default: this machine); return its path in ``out_dir``."""
    triple = host_target() if target is None else target
    if triple not in TARGETS:
        raise BuildError(f"unknown target {triple}; known: {', '.join(TARGETS)}")
    chosen = TARGETS[triple]
    place = NATIVE if out_dir is None else out_dir
    library, stamp = place / chosen.library, place / (chosen.library + ".stamp")
    if not TABLES.exists() or TABLES.stat().st_mtime_ns < MAKES_TABLES.stat().st_mtime_ns:
        _run([sys.executable, "-m", "build_tools.tables"], cwd=ROOT)
    digest = _digest(chosen)
    if library.exists() and stamp.exists() and stamp.read_text() == digest:
        return library
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=place) as scratch:
        fresh = _compile(chosen, Path(scratch))
        fresh.replace(library)
        note = Path(scratch) / "stamp"
        note.write_text(digest)
        note.replace(stamp)
    return library


def _digest(target: Target) -> str:
    state = hashlib.sha256(repr((target, FLAGS)).encode())
    state.update(Path(__file__).read_bytes())
    for path in sorted(SOURCE.rglob("*.[ch]")):
        state.update(path.relative_to(SOURCE).as_posix().encode() + b"\0")
        state.update(path.read_bytes())
    return state.hexdigest()


def _compile(target: Target, scratch: Path) -> Path:
    """Compile every source and link; return the library inside ``scratch``."""
    library = scratch / target.library
    zig(["-shared", "-s", *_objects(target, scratch), "-o", str(library)], target)
    return library


def _objects(target: Target, scratch: Path, flags: tuple[str, ...] = FLAGS) -> list[str]:
    """Compile every source into ``scratch``; return the paths of what was made."""
    base = (f"-mcpu={target.processors[0][1]}",)
    jobs: list[tuple[Path, str, tuple[str, ...]]]
    jobs = [(source, "base", base) for source in sorted(SOURCE.glob("*.c"))]
    for isa, processor in target.processors:
        own = (f"-mcpu={processor}", f"-DLG_ISA={isa}")
        jobs += [(source, isa, own) for source in sorted((SOURCE / "kernels").glob("*.c"))]

    def one(job: tuple[Path, str, tuple[str, ...]]) -> Path:
        source, isa, own = job
        made = scratch / f"{source.stem}-{isa}.o"
        pic = ("-fPIC",) if target.position_independent else ()
        zig(["-c", *flags, *own, *pic, str(source), "-o", str(made)], target)
        return made

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return [str(path) for path in pool.map(one, jobs)]


def zig(arguments: list[str], target: Target) -> None:
    """Run the compiler with its caches below _native; zig locks them against other builds."""
    cache = NATIVE / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    caches = {
        "ZIG_GLOBAL_CACHE_DIR": str(cache / "global"),
        "ZIG_LOCAL_CACHE_DIR": str(cache / "local"),
    }
    environment = {**os.environ, **caches}  # noqa: TID251 - handed on to the compiler, not read
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target.triple, *arguments]
    _run(command, cwd=cache, env=environment)


def _run(command: list[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}\n{done.stdout}{done.stderr}".rstrip())


def main() -> None:
    """Build from the command line."""
    from build_tools import reader  # noqa: PLC0415 - it builds with what is defined here

    parser = argparse.ArgumentParser(description="Build the native libraries.")
    parser.add_argument("--target", choices=sorted(TARGETS), help="default: this machine")
    parser.add_argument(
        "--out", type=Path, help="folder of the libraries (default: those of the package)"
    )
    parser.add_argument("--clean", action="store_true", help="remove the compiler's caches first")
    given = parser.parse_args()
    if given.clean:
        shutil.rmtree(NATIVE / "cache", ignore_errors=True)
    try:
        for make in (reader.native.build, reader.build):
            print(make(given.target, given.out))
    except reader.native.BuildError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
