"""Measure a training step on a GPU: is it right, how long does it take, where does the time go.

``python -m training.measure``. The figures kept are in ``docs/measurements/demo-training.md``.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor

import torch
from torch import Tensor

from training.data.kinds import BY_NAME
from training.data.packing import Mix
from training.data.stream import (
    DEFAULT_EFFORTS,
    DEFAULT_KINDS,
    Batch,
    BatchMaker,
    Phase,
    StreamConfig,
)
from training.loop.batches import prepare
from training.loop.losses import Shares, cross_entropy, terms
from training.loop.muon import Optimiser
from training.model.config import DEMO
from training.model.kda_chunk import delta_rule
from training.model.network import Blocks, Network
from training.model.parameters import ROUTER_BIAS, initial
from training.model.sinkhorn import sinkhorn, sinkhorn_plain

KINDS = tuple(BY_NAME)
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)


def make(length: int, tokens: int) -> Batch:
    """Make one batch of a row length."""
    config = StreamConfig(
        batch_tokens=tokens, phases=(Phase(0, {length: 1.0}),),
        mix=Mix(DEFAULT_KINDS, DEFAULT_EFFORTS),
    )  # fmt: skip
    return BatchMaker(config).batch(0)


def error(got: Tensor, want: Tensor) -> float:
    """Norm of the difference over the norm."""
    return float((got.double() - want.double()).norm() / want.double().norm())


def check_sinkhorn() -> None:
    """Compare the kernel and its gradient with plain torch in float64."""
    logits = 2 * torch.randn(1000, 4, 4, device="cuda")
    pull = torch.randn(1000, 4, 4, device="cuda", dtype=torch.float64)
    fast, slow = logits.clone().requires_grad_(), logits.double().requires_grad_()
    got, want = sinkhorn(fast, 20, 1e-6), sinkhorn_plain(slow, 20, 1e-6)
    (got * pull.float()).sum().backward()
    (want * pull).sum().backward()
    assert fast.grad is not None
    assert slow.grad is not None
    print(f"sinkhorn {error(got, want):.1e}, gradient {error(fast.grad, slow.grad):.1e}")


def check_delta_rule() -> None:
    """Compare the chunk form in tf32 with itself in float64."""
    t, h, d = 4096, 4, 64
    q, k, v = torch.randn(3, t, h, d, device="cuda", dtype=torch.float64).unbind(0)
    q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    g = -5 * torch.rand(t, h, d, device="cuda", dtype=torch.float64).pow(6)
    beta = torch.rand(t, h, device="cuda", dtype=torch.float64)
    document = torch.arange(t, device="cuda") // 700
    wide = [x.clone().requires_grad_() for x in (q, k, v, g, beta)]
    fast = [x.float().requires_grad_() for x in (q, k, v, g, beta)]
    want, got = delta_rule(*wide, document), delta_rule(*fast, document)
    pull = torch.randn_like(want)
    (want * pull).sum().backward()
    (got * pull.float()).sum().backward()
    errors = [f"{error(a.grad, b.grad):.1e}" for a, b in zip(fast, wide, strict=True)]
    print(f"delta rule {error(got, want):.1e}, gradients {errors}")


class Bench:
    """A network and its optimiser, run on ready batches."""

    def __init__(self, *, compiled: bool, streams: torch.dtype) -> None:
        params = initial(DEMO, 1)
        self.params = {
            n: v.cuda().requires_grad_(not n.endswith(ROUTER_BIAS)) for n, v in params.items()
        }
        blocks = Blocks.compiled() if compiled else Blocks()
        self.net = Network(DEMO, torch.bfloat16, streams, blocks)
        self.scored = torch.compile(cross_entropy) if compiled else cross_entropy
        self.optimiser = Optimiser(self.params, 0.05, 0.95)

    def step(self, raw: Batch, *, selects: bool) -> float:
        """Train once and wait; return the loss."""
        batch = prepare(raw, torch.device("cuda"), KINDS, selects=selects)
        found, _ = terms(self.net, self.params, batch, Shares(), self.scored)
        found.total.backward()
        trained = [v for v in self.params.values() if v.requires_grad]
        torch.nn.utils.clip_grad_norm_(trained, 1.0, foreach=True)
        self.optimiser.step(1e-3)
        return float(found.total)

    def time(self, raw: Batch, count: int, *, selects: bool) -> str:
        """Return seconds of the first step, then the mean of ``count``, tokens/s and memory."""
        torch.cuda.reset_peak_memory_stats()
        start = time.monotonic()
        self.step(raw, selects=selects)
        first = time.monotonic() - start
        start = time.monotonic()
        for _ in range(count):
            loss = self.step(raw, selects=selects)
        mean = (time.monotonic() - start) / count
        memory = torch.cuda.max_memory_allocated() / 2**30
        rate = raw.tokens.size / mean
        return (f"first {first:.1f} s, then {1000 * mean:.1f} ms, {rate:,.0f} tokens/s, "
                f"{memory:.1f} GiB, loss {loss:.3f}")  # fmt: skip

    def profile(self, raw: Batch, *, selects: bool) -> str:
        """Return where the device time of a step goes."""
        activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities) as seen:
            self.step(raw, selects=selects)
        return seen.key_averages().table(
            sort_by="self_cuda_time_total", row_limit=32, max_name_column_width=60
        )


def main() -> None:
    """Check, then time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=65536)
    parser.add_argument("--out", default=None)
    chosen = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    with ProcessPoolExecutor(8) as pool:
        made = {n: pool.submit(make, n, chosen.tokens) for n in LENGTHS}
        check_sinkhorn()
        check_delta_rule()
        batches = {n: future.result() for n, future in made.items()}
    bench = Bench(compiled=True, streams=torch.float32)
    for length, raw in batches.items():
        print(length, bench.time(raw, 4, selects=length > DEMO.top_k), flush=True)
    for length in (1024, 8192):
        table = bench.profile(batches[length], selects=length > 1024)
        if chosen.out:
            with open(f"{chosen.out}/profile-{length}.txt", "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(table)
    bench = Bench(compiled=True, streams=torch.bfloat16)
    for length in (1024, 4096):
        print("bf16 streams", length, bench.time(batches[length], 4, selects=True), flush=True)
    bench = Bench(compiled=False, streams=torch.float32)
    print("plain", 1024, bench.time(batches[1024], 2, selects=False), flush=True)


if __name__ == "__main__":
    main()
