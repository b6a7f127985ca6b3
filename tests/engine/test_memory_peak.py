"""The plan against the memory an engine process really takes, and an engine that rests."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from localglm import paths
from localglm.engine import protocol as p
from localglm.engine.client import Engine
from localglm.engine.own_memory import anonymous_bytes

ORACLE = Path(__file__).parent.parent / "oracle"
FILES = [
    "tiny-clamp.gguf",
    "tiny-f32.gguf",
    "tiny-kquants.gguf",
    "tiny-q8_0.gguf",
    "tiny-upstream-00001-of-00003.gguf",
]
CONTEXT, CHUNK, ANSWER = 1024, 256, 3


def ask(engine: Engine, ids: tuple[int, ...]) -> None:
    request = p.Generate(
        request=0, prompt=p.IdsPrompt(ids), max_tokens=ANSWER, ignore_end=True,
        sampling=p.Sampling(temperature=0.0),
    )  # fmt: skip
    for _ in engine.generate(request):
        pass


def peak(path: Path) -> tuple[p.MemoryPlan, int]:
    """Fill a context in six prompts, the last of a whole chunk, and watch the process."""
    stop, most = threading.Event(), [0]
    with Engine() as engine:
        assert engine.pid is not None
        pid = engine.pid

        def look() -> None:
            while not stop.wait(0.002):
                most[0] = max(most[0], anonymous_bytes(pid))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            request = p.OpenModel(
                request=0, path=str(path), context=CONTEXT, chunk=CHUNK, needs_text=False
            )
            plan = engine.open_model(request).plan
            ids = tuple(i * 7 % 250 for i in range(CONTEXT - ANSWER))
            last = len(ids) - CHUNK
            for turn in range(1, 6):
                ask(engine, ids[: last * turn // 5])
            ask(engine, ids)
            now = engine.memory()
            assert now.plan == plan
        finally:
            stop.set()
            thread.join()
    assert plan is not None
    assert plan.parts[0].nbytes < now.own <= most[0] + (1 << 20)  # the interpreter, the peak
    return plan, most[0]


@pytest.mark.parametrize("name", [*FILES, "demo"])
def test_the_plan_is_within_five_percent_of_the_peak(name: str) -> None:
    plan, most = peak(paths.demo_model() if name == "demo" else ORACLE / name)
    assert plan.process == pytest.approx(most, rel=0.05)
    work = next(part.nbytes for part in plan.parts if part.name.startswith("work on"))
    assert plan.process - work != pytest.approx(most, rel=0.05)  # it would be seen to lack


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def test_engine_and_client_rest_a_second_after_the_last_token() -> None:
    with Engine() as engine:
        engine.open_model(p.OpenModel(request=0, path=str(ORACLE / "tiny-q8_0.gguf"), context=512))
        worker, client = psutil.Process(engine.pid), psutil.Process()
        before = processor_seconds(worker)
        ask(engine, tuple(range(200)))
        assert processor_seconds(worker) > before  # it is seen to work
        time.sleep(1.0)  # what is measured: the time after the last token
        used = [processor_seconds(worker), processor_seconds(client)]
        begun = time.monotonic()
        time.sleep(2.0)
        passed = time.monotonic() - begun
        rates: list[Any] = [
            (processor_seconds(process) - at) / passed
            for process, at in zip((worker, client), used, strict=True)
        ]
    assert max(rates) < 0.01, rates
