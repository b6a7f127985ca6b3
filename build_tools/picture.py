"""Draw the README's picture: run commands in this checkout and keep what they print as SVG.

Run ``python -m build_tools.picture``; the commands are the ones shown in the picture.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
WIDTH = 100
GREEDY = ("--temperature", "0")
SESSION: tuple[tuple[list[str], int], ...] = (
    (["ask", "demo", "Who are you?", "--think", "off", *GREEDY], 8),
    (["ask", "demo", "What is 347 + 485?", "--think", "high", "--show-thinking", *GREEDY], 12),
    (["inspect", "demo"], 12),
)


def run(arguments: list[str], lines: int) -> list[str]:
    """Return the first ``lines`` lines a command prints, both streams in order."""
    done = subprocess.run(
        [sys.executable, "-m", "localglm", *arguments],
        cwd=ROOT, text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=True,
    )  # fmt: skip
    printed = done.stdout.rstrip().splitlines()
    return printed[:lines] + (["..."] if len(printed) > lines else [])


def main() -> None:
    """Run the session and write the picture."""
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True)
    for arguments, lines in SESSION:
        shown = [f'"{a}"' if " " in a or "!" in a else a for a in arguments]
        console.print(Text(f"$ localglm {' '.join(shown)}", style="bold green"))
        for line in run(arguments, lines):
            console.print(Text(line))
        console.print()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    # The viewer's own monospace font serves; a picture must not fetch anything.
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="localglm"), flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono")
    PICTURE.write_text(svg, encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
