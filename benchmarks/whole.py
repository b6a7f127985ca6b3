"""A whole model on the processor: prompts, decoding, and where the time goes.

Prints tokens per second of prompts and of decoding, then one table per case with each kind of op:
calls, milliseconds, GB/s of weights and their share of a plain read of the same file by as many
threads. "between ops" is what the graph itself costs. Tokens are drawn at random; rounds of all
cases take turns and medians are printed. At the end: processor time used while idle.

Run: python -m benchmarks.whole FILE [--prompt 128,512] [--generate 32] [--threads N] [--ops]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from localglm.arrays import U8
from localglm.backends.base import FusedOps
from localglm.engine.devices import DeviceChoice, opened
from localglm.gguf import ModelFile, open_model
from localglm.model.graph import Model
from localglm.model.load import load_model

READ_BYTES = 1 << 30
OUTSIDE = "between ops"


@dataclass(slots=True)
class Tally:
    """What the calls of one kind of op cost."""

    calls: int = 0
    seconds: float = 0.0
    weight_bytes: int = 0

    def line(self, name: str, passes: int, plain: float) -> str:
        """Return a row of the table, per pass."""
        rate = self.weight_bytes / self.seconds / 1e9 if self.weight_bytes else 0.0
        moved = f"{rate:.1f} | {rate / plain:.0%}" if rate else " | "
        return f"| {name} | {self.calls // passes} | {self.seconds / passes * 1e3:.2f} | {moved} |"


@dataclass(slots=True)
class Timed:
    """A device whose calls are timed, one tally per kind of op."""

    device: Any
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))

    @property
    def fused(self) -> FusedOps:
        """Runs of ops the device does in one go, timed as well."""
        runs = self.device.fused
        have = [f.name for f in fields(runs) if getattr(runs, f.name) is not None]
        return FusedOps(**{name: self._timed(name, getattr(runs, name)) for name in have})

    def __getattr__(self, name: str) -> Any:
        """Return the device's method, timed."""
        method = getattr(self.device, name)
        return self._timed(name, method) if callable(method) else method

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            result = method(*arguments, **named)
            tally = self.tallies[name]
            tally.seconds += time.perf_counter() - begin
            tally.calls += 1
            tally.weight_bytes += weight_bytes(name, arguments)
            return result

        return call


def weight_bytes(op: str, arguments: tuple[Any, ...]) -> int:
    """Return the bytes of weights an op reads once."""
    if op == "expert_ffn":
        held, _, ids, _ = arguments
        one = sum(int(s.data.nbytes) // int(s.shape[0]) for s in held.stacks)
        return one * len(np.unique(ids))
    if op == "products":
        return sum(int(weight.data.nbytes) for weight in arguments[0])
    if op == "gated_ffn":
        return sum(int(weight.data.nbytes) for weight in arguments[:3])
    named = {"matmul": 0, "head_matmul": 0, "hyper_pre": 1}
    return int(arguments[named[op]].data.nbytes) if op in named else 0


def plain_read(file: ModelFile, threads: int, rounds: int) -> float:
    """Return the GB/s at which ``threads`` threads read stored weights and do nothing else."""
    pieces: list[U8] = []
    for info in sorted(file.tensors.values(), key=lambda t: -t.nbytes):
        if sum(p.nbytes for p in pieces) < READ_BYTES:
            data = file.data(info.name).reshape(-1)
            pieces += np.array_split(data[: min(data.size, READ_BYTES) // 64 * 64], 8)
    whole = [p[: p.size // 8 * 8].view(np.uint64) for p in pieces]
    with ThreadPoolExecutor(threads) as pool:
        seconds = []
        for _ in range(rounds + 1):  # the first one brings the pages in
            begin = time.perf_counter()
            list(pool.map(np.bitwise_xor.reduce, whole))
            seconds.append(time.perf_counter() - begin)
    return sum(p.nbytes for p in whole) / statistics.median(seconds[1:]) / 1e9


@dataclass(frozen=True, slots=True)
class Bench:
    """A model and the tokens it is fed."""

    model: Model
    rng: np.random.Generator

    def draw(self, count: int) -> list[int]:
        """Return random tokens."""
        return [int(i) for i in self.rng.integers(0, self.model.geometry.vocabulary, count)]

    def prefill(self, count: int) -> float:
        """Return the seconds of one prompt."""
        state, tokens = self.model.new_state(context=count), self.draw(count)
        begin = time.perf_counter()
        self.model.forward(state, tokens)
        return time.perf_counter() - begin

    def decode(self, count: int) -> list[float]:
        """Return the seconds of each of ``count`` tokens after a short prompt."""
        state = self.model.new_state(context=count + 16)
        self.model.forward(state, self.draw(16))
        seconds = []
        for _ in range(count):
            tokens = self.draw(1)
            begin = time.perf_counter()
            self.model.forward(state, tokens)
            seconds.append(time.perf_counter() - begin)
        return seconds


def by_op(
    model: Model, name: str, passes: int, plain: float, run: Callable[[Bench], float]
) -> None:
    """Print what each kind of op takes in one case; ``run`` returns the seconds that count."""
    timed = Timed(model.device)
    bench = Bench(Model(model.geometry, model.weights, timed), np.random.default_rng(2))
    bench.model.forward(bench.model.new_state(context=16), bench.draw(16))
    timed.tallies.clear()
    total = run(bench)
    inside = sum(t.seconds for t in timed.tallies.values())
    timed.tallies[OUTSIDE] = Tally(0, total - inside)
    print(f"\n{name}: {total / passes * 1e3:.1f} ms\n")
    print(
        "| op | calls | ms | GB/s of weights | of a plain read |\n| --- | --- | --- | --- | --- |"
    )
    for op, tally in sorted(timed.tallies.items(), key=lambda item: -item[1].seconds):
        print(tally.line(op, passes, plain))


def one_by_one(bench: Bench, count: int) -> float:
    """Return the seconds of ``count`` tokens fed one at a time to an empty state."""
    state, tokens = bench.model.new_state(context=count), bench.draw(count)
    begin = time.perf_counter()
    for token in tokens:
        bench.model.forward(state, [token])
    return time.perf_counter() - begin


def idle_share(seconds: float) -> float:
    """Return the share of a core this process uses from one second after the last token."""
    time.sleep(1.0)
    before = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - before) / seconds


def rounds_of(bench: Bench, prompts: list[int], generate: int, rounds: int) -> None:
    """Print tokens per second of every case."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for count in prompts:
            seconds[f"prompt of {count}"].append(bench.prefill(count) / count)
        if generate:
            seconds["decoding"] += bench.decode(generate)
    print("\n| case | tokens/s | ms a token |\n| --- | --- | --- |")
    for name, each in seconds.items():
        middle = statistics.median(each)
        print(f"| {name} | {1 / middle:.1f} | {middle * 1e3:.2f} |")


def main() -> None:
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--prompt", default="128,512", help="lengths of prompts, with commas")
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--isa")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ops", action="store_true", help="also print each kind of op")
    given = parser.parse_args()
    prompts = [int(n) for n in given.prompt.split(",") if n]
    choice = DeviceChoice(threads=given.threads, isa=given.isa)
    with open_model(given.file) as file, opened(choice) as device:
        model = Model(*load_model(file, device), device)
        threads = getattr(device, "threads", 1)
        plain = plain_read(file, threads, given.rounds)
        print(f"{given.file.name}: {threads} threads, plain read {plain:.1f} GB/s")
        rounds_of(Bench(model, np.random.default_rng(1)), prompts, given.generate, given.rounds)
        if given.ops:
            for n in prompts:
                by_op(model, f"prompt of {n}", 1, plain, partial(Bench.prefill, count=n))
            n = max(1, given.generate)
            by_op(model, "decoding", n, plain, partial(one_by_one, count=n))
        print(f"\nidle: {idle_share(2.0):.2%} of a core")


if __name__ == "__main__":
    main()
