"""What is refused about a request before a model is open."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from localglm.engine import protocol as p
from localglm.engine.checks import check_generate, pack
from localglm.engine.frames import MAX_FRAME_BYTES
from localglm.engine.places import in_words
from localglm.errors import RequestError, UsageError

PROMPT = p.TextPrompt("Hi")


def test_the_edge_values_pass() -> None:
    check_generate(p.Generate(request=1, prompt=PROMPT, max_tokens=0, stop=("x",)))


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        (p.Generate(request=1, prompt=PROMPT, max_tokens=-1), "--max-tokens = -1"),
        (p.Generate(request=1, prompt=PROMPT, stop=("x", "")), "a stop string is empty"),
        (
            p.Generate(request=1, prompt=PROMPT, sampling=p.Sampling(repetition_penalty=99.0)),
            "--repetition-penalty = 99",
        ),
        (
            p.Generate(request=1, prompt=PROMPT, sampling=p.Sampling(frequency_penalty=math.nan)),
            "--frequency-penalty = nan",
        ),
    ],
)
def test_a_bad_value_is_refused_as_the_user_knows_it(request_: p.Generate, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        check_generate(request_, lambda name: "--" + name.replace("_", "-"))


def test_a_request_larger_than_a_frame_speaks_of_the_prompt() -> None:
    assert len(pack(p.Generate(request=1, prompt=PROMPT))) < 1000
    with pytest.raises(RequestError, match="the prompt is too large") as caught:
        pack(p.Generate(request=1, prompt=p.TextPrompt("x" * MAX_FRAME_BYTES)))
    assert caught.value.exit_code == 8


def test_a_byte_that_is_no_text_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="not valid Unicode"):
        pack(p.Generate(request=1, prompt=p.TextPrompt("a\udcff")))


def test_the_checks_need_no_numpy() -> None:
    code = "import sys, localglm.engine.checks; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("l3.attn_out", "layer 3, output of the attention (l3.attn_out)"),
        ("l12.router_w", "layer 12, weights of the chosen experts (l12.router_w)"),
        ("l0.hc_attn_in", "layer 0, mixing of the residual streams before the attention"),
        ("l0.kda_q", "layer 0, linear attention (l0.kda_q)"),
        ("mtp.h", "the draft block, hidden state (mtp.h)"),
        ("hidden", "the last hidden state"),
        ("l4.new", "layer 4 (l4.new)"),
        ("other", "the model (other)"),
    ],
)
def test_a_place_is_told_in_words(name: str, words: str) -> None:
    assert in_words(name).startswith(words)
