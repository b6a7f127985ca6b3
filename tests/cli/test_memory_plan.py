"""What the commands say of memory before a model is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MODEL = Path(__file__).parent.parent / "oracle" / "tiny-q8_0.gguf"


def run(command: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "localglm", command, str(MODEL), *arguments], check=False,
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=100,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def test_inspect_shows_every_part_with_a_bar() -> None:
    out, _ = run("inspect", "--memory-plan", "--context", "512")
    table = out.split("memory for a conversation of 512 tokens\n")[1]
    for name in ("interpreter and libraries", "caches of 512 tokens", "routed experts"):
        assert name in table
    assert "█" in table
    assert "in memory, as pages of the file" in table
    assert "memory for a conversation" not in run("inspect")[0]


def test_inspect_gives_the_plan_as_data() -> None:
    told = json.loads(run("inspect", "--memory-plan", "--json", "--context", "64")[0])["memory"]
    assert told["context"] == 64
    assert told["experts"] == "mapped"
    own = sum(part["nbytes"] for part in told["parts"] if part["home"] == "memory")
    assert own == told["process_bytes"]
    assert told["limit"] > own


def test_what_cannot_fit_is_refused_by_every_command_before_it_loads() -> None:
    for command, *more in (["inspect", "--memory-plan"], ["ask", "hi"], ["bench"]):
        _, err = run(command, *more, "--memory", "8MiB", code=6)
        assert "error: this needs" in err
        assert "may take 8.0 MiB" in err
        assert "a larger --memory" in err


def test_bench_says_what_it_takes_and_ask_only_when_something_is_slow() -> None:
    _, err = run("bench", "--prompt", "4", "--generate", "1", "--context", "64")
    assert "memory: " in err
    assert "everything fits" in err
    _, err = run("ask", "hi", "--max-tokens", "1", "--context", "256")
    assert "memory: " not in err


def test_a_tiny_context_works_or_says_what_is_too_much() -> None:
    run("bench", "--prompt", "15", "--generate", "1", "--context", "16")
    _, err = run("bench", "--prompt", "16", "--generate", "1", "--context", "16", code=2)
    assert "need 17 tokens" in err
    _, err = run("ask", "hello " * 30, "--context", "16", code=8)
    assert "the context holds 16" in err
