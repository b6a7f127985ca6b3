"""Print the size of the code base and fail on files, functions or leftovers beyond the limits."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE_LIMIT = {"localglm": 400, "build_tools": 400, "benchmarks": 400, "tests": 500}
FUNCTION_LIMIT = 60
NATIVE_LIMIT = 450
_LEFTOVER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")


def function_lengths(path: Path) -> list[tuple[int, str]]:
    """Return (lines, name) of every function in a Python file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def check_file(path: Path, limit: int) -> tuple[int, list[str]]:
    """Return the lines of a file and what is wrong with it."""
    text = path.read_text(encoding="utf-8")
    name, lines, found = path.relative_to(ROOT).as_posix(), text.count("\n"), []
    if lines > limit:
        found.append(f"{name}: {lines} lines, limit {limit}")
    if name != "build_tools/sizes.py" and _LEFTOVER.search(text):
        found.append(f"{name}: a leftover marker")
    if path.suffix == ".py":
        found += [
            f"{name}: {function} has {n} lines, limit {FUNCTION_LIMIT}"
            for n, function in function_lengths(path)
            if n > FUNCTION_LIMIT
        ]
    return lines, found


def main() -> int:
    """Check every source file; return 1 when a limit is passed."""
    problems: list[str] = []
    for area, limit in FILE_LIMIT.items():
        total = files = 0
        for path in sorted((ROOT / area).rglob("*")):
            if "generated" in path.parts or "_native" in path.parts:
                continue
            if path.suffix not in {".py", ".c", ".h", ".cu", ".wgsl"}:
                continue
            lines, found = check_file(path, limit if path.suffix == ".py" else NATIVE_LIMIT)
            total, files = total + lines, files + 1
            problems += found
        print(f"{area:<12} {files:>4} files {total:>6} lines")
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
