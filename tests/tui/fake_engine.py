"""A scripted engine for the full screen: it says what a test gives it, when the test lets it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localglm.engine import protocol as p
from localglm.errors import WorkerError
from localglm.tui.app import GlmApp
from localglm.tui.begin import Begin, Last
from localglm.tui.finding import Found, Model
from localglm.tui.shelf import MemoryShelf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def think(text: str) -> p.Delta:
    return p.Delta(request=1, kind="thinking", text=text)


def say(text: str) -> p.Delta:
    return p.Delta(request=1, kind="answer", text=text)


def done(reason: str = "end", **counts: int) -> p.Done:
    usage = {"prompt": 10, "cached": 4, "read": 6, "generated": 5, "thinking": 0} | counts
    times = p.Timings(
        prefill_s=0.5, decode_s=1.0, prefill_tokens_per_s=12.0, decode_tokens_per_s=5.0
    )
    return p.Done(request=1, reason=reason, usage=p.Usage(**usage), timings=times, seed=7)


class Gate:
    """A place in a script that waits for the test."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def open(self) -> None:
        self.event.set()


class Crash:
    """The engine dies here."""


@dataclass
class FakeGeneration:
    script: list[Any]
    is_cancelled: threading.Event = field(default_factory=threading.Event)
    ends_thinking: threading.Event = field(default_factory=threading.Event)
    budgets: list[int | None] = field(default_factory=list)

    def __iter__(self) -> Iterator[p.Event]:
        is_thinking_over = False
        for step in self.script:
            if isinstance(step, Gate):
                while not (
                    step.event.wait(0.005)
                    or self.is_cancelled.is_set()
                    or (self.ends_thinking.is_set() and not is_thinking_over)
                ):
                    pass
                is_thinking_over = self.ends_thinking.is_set()
                continue
            if self.is_cancelled.is_set():
                yield done("cancelled")
                return
            if isinstance(step, Crash):
                raise WorkerError("the engine ended", why="signal 9", try_="send it again")
            yield step
        if self.is_cancelled.is_set():
            yield done("cancelled")
            return
        if not isinstance(self.script[-1], p.Done):
            yield done()

    def cancel(self) -> None:
        self.is_cancelled.set()

    def end_thinking(self) -> None:
        self.ends_thinking.set()

    def set_budget(self, tokens: int | None) -> None:
        self.budgets.append(tokens)


class FakeEngine:
    """Plays one script for each request, the last one again and again."""

    def __init__(self, *scripts: list[Any]) -> None:
        self.scripts = list(scripts) or [[say("hello")]]
        self.requests: list[p.Generate] = []
        self.generations: list[FakeGeneration] = []
        self.opened: list[p.OpenModel] = []
        self.asked: list[p.Request] = []
        self.plan = p.PlanReply(request=1, total=100, cached=90, read=10)
        self.is_stopped = False
        self.open_error: Exception | None = None

    def open_model(
        self, request: p.OpenModel, on_progress: Callable[[p.Loading], None] | None = None
    ) -> p.Opened:
        self.opened.append(request)
        if self.open_error is not None:
            raise self.open_error
        if on_progress is not None:
            on_progress(p.Loading(request=1, stage="loading weights", done=1, total=2))
        return p.Opened(
            request=1, path=request.path, files=1, architecture="glm", backend="cpu",
            context=4096, vocabulary=100, weight_bytes=1000, token_bytes=10,
        )  # fmt: skip

    def generate(self, request: p.Generate) -> FakeGeneration:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.requests.append(request)
        self.generations.append(FakeGeneration(list(script)))
        return self.generations[-1]

    def call(self, request: p.Request) -> p.Event:
        self.asked.append(request)
        match request:
            case p.Plan():
                return self.plan
            case p.Memory():
                return p.MemoryReply(
                    request=1, weights=3 << 30, buffers=1 << 30, mapped=0, process=5 << 30,
                    sessions={"main": 1 << 20}, snapshots=1,
                )  # fmt: skip
            case _:
                return p.StatsReply(
                    request=1, requests=1, prompt_tokens=10, cached_tokens=4, generated_tokens=5,
                    prefill_s=0.5, decode_s=1.0,
                )  # fmt: skip

    def stop(self, seconds: float | None = None) -> None:
        self.is_stopped = True
        for generation in self.generations:
            generation.cancel()


def begin(engine: Any, shelf: Any = None, **changes: Any) -> Begin:
    """A program on a fake engine that has been used before, unless the test says otherwise."""
    shelf = MemoryShelf() if shelf is None else shelf
    kept: list[Last] = []

    def generate(prompt: Any, controls: Any) -> p.Generate:
        return p.Generate(request=0, prompt=prompt, thinking_budget=controls.budget)

    values: dict[str, Any] = {
        "make_engine": lambda: engine,
        "make_shelf": lambda: shelf,
        "open_request": lambda path: p.OpenModel(request=0, path=str(path)),
        "generate_request": generate,
        "find_models": lambda: [Model("demo", Path("demo.gguf"), 14 << 20)],
        "find_machine": lambda: Found("Test card", "cpu", "the processor always works", "8 GiB"),
        "keep_last": kept.append,
        "model": Path("demo.gguf"),
    }
    return Begin(**(values | changes))


def program(engine: Any = None, **changes: Any) -> GlmApp:
    return GlmApp(begin(engine or FakeEngine(), **changes))
