"""The memory plan of each file and context against the peak that the engine process reaches.

Six prompts, each going on from the one before, fill the context, so that every place to go back to
is in use. What is compared is the memory of the process's own (on Linux RssAnon + RssShmem of
/proc/PID/status, sampled every 3 ms), interpreter included; pages of the file are the system's.
With --filled the caches are written without computing but for the last six chunks.

Run: python -m benchmarks.memory FILE... [--context 512,4096] [--filled] [--memory BYTES]
"""

from __future__ import annotations

import argparse
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from localglm.engine import protocol as p
from localglm.engine.client import Engine, EngineOptions
from localglm.engine.opening import OpenedFile, open_model_file
from localglm.engine.own_memory import anonymous_bytes
from localglm.engine.process import WorkerCommand
from localglm.model.layer_state import KdaState
from localglm.units import size_text

TURNS = 6
ANSWER = 3
FEED = 256


@dataclass(slots=True)
class Watch:
    """The most memory a process had."""

    pid: int
    peak: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    _thread: threading.Thread = field(init=False)

    def _look(self) -> None:
        while not self._stop.wait(0.003):
            self.peak = max(self.peak, anonymous_bytes(self.pid))


class FilledModel:
    """A model whose new states have seen ``count`` tokens 0 that were not computed."""

    def __init__(self, model: Any, count: int) -> None:
        self._model = model
        self._count = count

    def __getattr__(self, name: str) -> Any:
        """Return the model's own."""
        return getattr(self._model, name)

    def new_state(self, *, context: int, cache_type: str = "f16") -> Any:
        """Return a state whose caches are full up to the count."""
        state = self._model.new_state(context=context, cache_type=cache_type)
        pool = self._model.geometry.indexer.pool
        for layer in state.layers:
            if isinstance(layer, KdaState):
                continue
            for cache, every in ((layer.latents, 1), (layer.pools, pool)):
                for start in range(0, self._count // every, FEED):
                    rows = min(FEED, self._count // every - start)
                    cache.append(np.zeros((rows, cache.width), np.float32))
        state.commit([0] * self._count)
        return state


def open_filled(request: p.OpenModel, progress: Any) -> OpenedFile:
    """Open a model with filled caches."""
    opened = open_model_file(request, progress)
    assert request.context is not None
    model: Any = FilledModel(opened.model, first_token(request.context, request.chunk))
    opened.model = model
    return opened


def first_token(context: int, chunk: int) -> int:
    """Return how many tokens are filled: a whole pool before the prompts that are read."""
    return max(0, context - ANSWER - TURNS * chunk) // 64 * 64


def main() -> None:
    """Print one row per file and context."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--context", default="512,4096")
    parser.add_argument("--chunk", type=int, default=256)
    parser.add_argument("--cache-type", default="f16")
    parser.add_argument("--filled", action="store_true", help="fill caches without computing")
    parser.add_argument("--memory", type=int)
    chosen = parser.parse_args()
    print("| file | context | experts | planned | peak | planned / peak | base |")
    print("|---|---|---|---|---|---|---|")
    for file in chosen.files:
        for context in map(int, chosen.context.split(",")):
            request = p.OpenModel(
                request=0, path=str(file.absolute()), context=context, chunk=chosen.chunk,
                cache_type=chosen.cache_type, needs_text=False, memory=chosen.memory,
            )  # fmt: skip
            print(row(request, is_filled=chosen.filled), flush=True)


def row(request: p.OpenModel, *, is_filled: bool) -> str:
    """Run one case."""
    assert request.context is not None
    context, chunk = request.context, request.chunk
    opener = "benchmarks.memory:open_filled" if is_filled else WorkerCommand().opener
    with Engine(EngineOptions(WorkerCommand(opener))) as engine:
        assert engine.pid is not None
        with Watch(engine.pid) as watch:
            opened = engine.open_model(request)
            first = first_token(context, chunk) if is_filled else 0
            chance = random.Random(context)
            ids = [0] * first
            some = range(opened.vocabulary // 4, opened.vocabulary // 2)  # ordinary tokens
            ids += chance.choices(some, k=context - first)
            end = context - ANSWER
            last = max(first, end - chunk)  # the last prompt reads a whole chunk
            for turn in range(1, TURNS):
                ask(engine, tuple(ids[: first + (last - first) * turn // (TURNS - 1)]))
            ask(engine, tuple(ids[:end]))
    plan = opened.plan
    assert plan is not None
    base = plan.parts[0].nbytes
    name = Path(request.path).name
    return (
        f"| {name} | {context} | {plan.experts} | {size_text(plan.process)} |"
        f" {size_text(watch.peak)} | {plan.process / watch.peak:.3f} | {size_text(base)} |"
    )


def ask(engine: Engine, ids: tuple[int, ...]) -> None:
    """Read a prompt and write a few tokens."""
    request = p.Generate(
        request=0, prompt=p.IdsPrompt(ids), max_tokens=ANSWER, ignore_end=True,
        sampling=p.Sampling(temperature=0.0),
    )  # fmt: skip
    for _ in engine.generate(request):
        pass


if __name__ == "__main__":
    main()
