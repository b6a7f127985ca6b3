"""Train the demo model for a given time on one device.

``python -m training.train --out FOLDER --minutes 8.3`` starts from the seed; ``--weights FOLDER``
continues from the parts of an earlier run. Needs torch; on a GPU also triton.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from training.data.kinds import BY_NAME
from training.data.packing import Mix
from training.data.stream import DEFAULT_EFFORTS, DEFAULT_KINDS, StreamConfig
from training.data.stream import Phase as LengthPhase
from training.loop.batches import Feed, prepare
from training.loop.checkpoint import load_parts, save_parts
from training.loop.losses import Shares, cross_entropy, right_by_kind, terms
from training.loop.muon import Optimiser, balance
from training.loop.record import Record
from training.loop.schedule import RUNS, Rate, Stage, stage_at
from training.model.config import DEMO, TINY, ModelConfig
from training.model.network import Blocks, Network
from training.model.parameters import ROUTER_BIAS, Params, initial

KINDS = tuple(BY_NAME)


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is told."""

    out: Path
    minutes: float
    weights: Path | None
    seed: int
    tokens: int
    peak: float
    warm: int
    hold: float
    end: float
    run: str
    shape: str
    compiled: bool
    workers: int
    clip: float
    bias_rate: float
    save_every: float
    log_every: int
    steps: int | None


def options() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=8.3)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=65536, help="tokens per step")
    parser.add_argument("--peak", type=float, default=4e-3)
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--hold", type=float, default=0.5)
    parser.add_argument("--end", type=float, default=0.02)
    parser.add_argument("--run", choices=list(RUNS), default="first")
    parser.add_argument("--shape", choices=("tiny", "demo"), default="demo")
    parser.add_argument("--plain", dest="compiled", action="store_false")
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--bias-rate", type=float, default=1e-3)
    parser.add_argument("--save-every", type=float, default=2.0, help="minutes")
    parser.add_argument("--log-every", type=int, default=20)
    parser.add_argument("--steps", type=int)
    return Options(**vars(parser.parse_args()))


def feeds(chosen: Options, stages: tuple[Stage, ...]) -> list[Feed]:
    """Start the data of every stage at once, so that no stage waits for its first batch."""
    mix = Mix(DEFAULT_KINDS, DEFAULT_EFFORTS)
    return [
        Feed(StreamConfig(
            seed=1000 * chosen.seed + place, workers=chosen.workers, batch_tokens=chosen.tokens,
            phases=(LengthPhase(0, stage.lengths),), mix=mix, prompt_weight=stage.prompt_weight,
        ))
        for place, stage in enumerate(stages)
    ]  # fmt: skip


def start_values(chosen: Options, c: ModelConfig, device: torch.device) -> Params:
    """Return parameters on the device that ask for gradients, except the router's bias."""
    params = load_parts(chosen.weights) if chosen.weights else initial(c, chosen.seed)
    return {
        name: value.to(device).requires_grad_(not name.endswith(ROUTER_BIAS))
        for name, value in params.items()
    }


class Run:
    """One run: its network, parameters, optimiser, data and log."""

    def __init__(self, chosen: Options) -> None:
        self.chosen = chosen
        is_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if is_gpu else "cpu")
        self.config = DEMO if chosen.shape == "demo" else TINY
        torch.manual_seed(chosen.seed)
        torch.set_float32_matmul_precision("high")
        self.stages = RUNS[chosen.run]
        self.feeds = feeds(chosen, self.stages)
        self.params = start_values(chosen, self.config, self.device)
        self.optimiser = Optimiser(self.params, decay=0.05, momentum=0.95)
        blocks = Blocks.compiled() if chosen.compiled else Blocks()
        dtype = torch.bfloat16 if is_gpu else torch.float32
        self.network = Network(self.config, dtype, torch.float32, blocks)
        self.scored = torch.compile(cross_entropy) if chosen.compiled else cross_entropy
        self.trained = [v for v in self.params.values() if v.requires_grad]
        self.rate = Rate(chosen.peak, chosen.warm, chosen.hold, chosen.end)
        self.record = Record(chosen.out, KINDS)

    def step(self, number: int, share: float) -> tuple[float, int]:
        """Train on one batch; return the learning rate and the row length."""
        place = stage_at(self.stages, share)
        stage = self.stages[place]
        raw = self.feeds[place].next()
        length = raw.tokens.shape[1]
        selects = stage.selects and length > self.config.top_k
        batch = prepare(raw, self.device, KINDS, selects=selects)
        found, out = terms(self.network, self.params, batch, Shares(), self.scored)
        found.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trained, self.chosen.clip, foreach=True)
        rate = self.rate.at(number, share)
        self.optimiser.step(rate)
        balance(self.params, out.loads, self.chosen.bias_rate * rate / self.rate.peak)
        self.record.add(found.watched, norm, out.loads, raw.tokens.size)
        self.record.add_kinds(length, right_by_kind(found.best, batch, len(KINDS)))
        return rate, length

    def go(self) -> None:
        """Train until the time is up, saving on the way and at the end."""
        budget, number, saved = self.chosen.minutes * 60, 0, 0.0
        began = self.record.start
        while (passed := time.monotonic() - began) < budget and number != self.chosen.steps:
            rate, length = self.step(number, passed / budget)
            number += 1
            if number % self.chosen.log_every == 0 or number < 3:
                self.record.flush(number, rate, length)
            if number % (10 * self.chosen.log_every) == 0:
                self.record.flush_kinds(number)
            if passed - saved > self.chosen.save_every * 60:
                saved = passed
                save_parts(self.chosen.out, self.params)
        self.record.flush_kinds(number)
        save_parts(self.chosen.out, self.params)
        print(f"{number} steps, {self.record.tokens} tokens", flush=True)
        for feed in self.feeds:
            feed.close()


if __name__ == "__main__":
    Run(options()).go()
