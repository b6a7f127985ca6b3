"""``localglm bench``: figures that stand on tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localglm.cli.bench import _lines
from tests.gguf_files import Tiny, write_model

MODEL = Path(__file__).parent.parent / "oracle" / "tiny-q8_0.gguf"


def bench(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "bench", str(MODEL), *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def as_json(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench(*arguments, "--json"))
    return found


def test_the_figures_stand_on_the_tokens_asked_for() -> None:
    told = as_json("--prompt", "48", "--generate", "6")
    assert (told["prompt_tokens"], told["generated_tokens"], told["timed_steps"]) == (48, 6, 5)
    assert told["prefill_tokens_per_s"] == pytest.approx(48 / told["prefill_s"])
    assert told["decode_tokens_per_s"] == pytest.approx(1 / told["decode_median_s"])
    per_s = told["weight_bytes_per_token"] / told["decode_median_s"] / 1e9
    assert told["weight_gb_per_s"] == pytest.approx(per_s)
    assert 0 < told["weight_bytes_per_token"] < told["weight_bytes"] <= MODEL.stat().st_size


@pytest.mark.parametrize("generate", ["0", "1"])
def test_no_decode_rate_without_timed_steps(generate: str) -> None:
    told = as_json("--prompt", "8", "--generate", generate)
    assert told["decode_tokens_per_s"] is None
    assert told["weight_gb_per_s"] is None
    assert "not measured" in bench("--prompt", "8", "--generate", generate)


def test_a_prompt_beyond_the_file_is_refused_with_both_numbers() -> None:
    err = bench("--prompt", "5000", "--generate", "1", code=2)
    assert "5001" in err
    assert "4096" in err


def test_a_context_that_was_asked_for_and_is_too_small_is_refused_by_the_flags() -> None:
    err = bench("--prompt", "20", "--generate", "10", "--context", "29", code=2)
    assert "--prompt and --generate need 30 tokens and the context holds 29" in err
    assert "set by command line" in err


def test_a_file_without_a_vocabulary_is_measured(tmp_path: Path) -> None:
    path = write_model(tmp_path, Tiny(tokenizer=False))
    done = subprocess.run(
        [sys.executable, "-m", "localglm", "bench", str(path), "--prompt", "9", "--generate", "3"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert "prefill  9 tokens" in done.stdout
    assert "note: the file has no vocabulary" in done.stderr
    asked = [sys.executable, "-m", "localglm", "ask", str(path), "Hi"]
    refused = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=100)
    assert refused.returncode == 3


def test_the_text_names_both_rates() -> None:
    out = bench("--prompt", "16", "--generate", "4")
    assert "prefill  16 tokens" in out
    assert "median of 3 steps" in out
    assert "GB/s" in out


def test_what_was_read_from_the_disk_is_summed_up() -> None:
    told = as_json("--prompt", "8", "--generate", "3")
    assert told["experts"] == "mapped"
    assert told["planned_bytes"] > 0
    assert told["experts_read"] is None
    assert not [line for line in _lines(told) if line.startswith("experts")]
    counts = {"hits": 1, "foreseen": 2, "misses": 1, "bytes_read": 3 << 30, "bytes_per_s": 2e9}
    (line,) = [x for x in _lines({**told, "experts_read": counts}) if x.startswith("experts")]
    assert "3.0 GiB read from the disk at 2.00 GB/s; 25% of those wanted" in line
    assert "50% on their way" in line
    nothing = dict.fromkeys(counts, 0) | {"bytes_per_s": None}
    (line,) = [x for x in _lines({**told, "experts_read": nothing}) if x.startswith("experts")]
    assert line == "experts  0 B read from the disk"
