"""What the full screen costs: event-loop lag, processor time, first frame, idle, and a long paste.

Run: ``python -m benchmarks.tui``. A scripted engine writes a 60,000-character answer with a
thought, the screen is 120x40 without a terminal. Lag: how late a timer of 5 ms comes.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events

from localglm.engine import protocol as p

sys.path.append(str(Path(__file__).parents[1] / "tests" / "tui"))

from fake_engine import FakeEngine, done, program, say, think

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = (120, 40)
WORDS = "The scan brings a strip of its state together first, **then** `reads` it again. "
_FIRST_FRAME = """
import asyncio, sys, time
begun = time.perf_counter()
sys.path.append("tests/tui")
from fake_engine import program
async def main():
    app = program()
    async with app.run_test(size=(120, 40)) as pilot:
        print(time.perf_counter() - begun)
        app.exit()
    app.close()
asyncio.run(main())
"""


def words(characters: int, *, paragraphs: bool) -> Iterator[str]:
    """Yield about four characters a token, like a model."""
    source = WORDS * (characters // len(WORDS) + 1)
    for count, at in enumerate(range(0, characters, 4)):
        yield source[at : at + 4] + ("\n\n" if paragraphs and count % 100 == 99 else "")


class Paced:
    """A generation at a number of tokens a second."""

    def __init__(self, script: list[p.Event], rate: float) -> None:
        self._script, self._rate = script, rate
        self._over = threading.Event()

    def __iter__(self) -> Iterator[p.Event]:
        begun = time.perf_counter()
        for count, event in enumerate(self._script):
            wait = begun + count / self._rate - time.perf_counter()
            if wait > 0:
                self._over.wait(wait)
            yield event
        yield done()

    def cancel(self) -> None:
        """End the waiting."""
        self._over.set()


class PacedEngine(FakeEngine):
    """An engine that writes at a pace."""

    def __init__(self, script: list[p.Event], rate: float) -> None:
        super().__init__()
        self.paced = (script, rate)

    def generate(self, request: p.Generate) -> Any:  # noqa: ARG002 - the name is the protocol's
        """Return a paced generation."""
        return Paced(*self.paced)


async def lags(stop: asyncio.Event) -> list[float]:
    """Return how late a timer of 5 ms comes, until told to stop."""
    out = []
    while not stop.is_set():
        begun = time.perf_counter()
        await asyncio.sleep(0.005)
        out.append(max(0.0, time.perf_counter() - begun - 0.005))
    return out


async def stream(
    script: list[p.Event], rate: float, before: list[p.Event], *, is_watched: bool = True
) -> tuple[list[float], float, float]:
    """Return the lags, the processor seconds and the seconds of one answer."""
    engine = PacedEngine(before, 1e9)
    app = program(engine)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        if before:
            app.chat.say("before")
            while app.chat.answering is not None:  # noqa: ASYNC110 - the screen has no such event
                await asyncio.sleep(0.25)
        engine.paced = (script, rate)
        stop = asyncio.Event()
        watcher = asyncio.create_task(lags(stop)) if is_watched else None
        cpu, begun = time.process_time(), time.perf_counter()
        app.chat.say("go")
        while app.chat.answering is not None:  # noqa: ASYNC110 - the screen has no such event
            await asyncio.sleep(0.25)
        spent = (time.process_time() - cpu, time.perf_counter() - begun)
        stop.set()
        found = [] if watcher is None else await watcher
        app.exit()
    app.close()
    return (found, *spent)


def report_lag(name: str, found: list[float]) -> None:
    """Print a distribution."""
    ordered = sorted(found)
    p99 = ordered[int(0.99 * len(ordered))]
    print(f"{name}: lag median {1000 * statistics.median(found):.2f} ms, p99 {1000 * p99:.2f} ms,"
          f" worst {1000 * ordered[-1]:.1f} ms, {len(found)} wakes")  # fmt: skip


async def idle(seconds: float) -> float:
    """Return the share of a core of a program nobody uses."""
    app = program()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await asyncio.sleep(1.0)
        begun = time.process_time()
        await asyncio.sleep(seconds)
        share = (time.process_time() - begun) / seconds
        app.exit()
    app.close()
    return share


async def paste(characters: int) -> float:
    """Return the seconds until a long paste is on the screen."""
    app = program()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        begun = time.perf_counter()
        app.chat.prompt.post_message(events.Paste("pasted line of text\n" * (characters // 20)))
        while not app.chat.prompt.text:  # noqa: ASYNC110 - the screen has no such event
            await asyncio.sleep(0)
        await pilot.pause()
        seconds = time.perf_counter() - begun
        app.exit()
    app.close()
    return seconds


def first_frame() -> float:
    """Return the seconds from import to the first frame, in a fresh process."""
    took = subprocess.run(
        [sys.executable, "-c", _FIRST_FRAME], capture_output=True, text=True, check=True
    )
    return float(took.stdout.split()[-1])


def main() -> None:
    """Print every figure."""
    for name, paragraphs in (("paragraphs", True), ("one paragraph", False)):
        thought = [think(text) for text in words(20_000, paragraphs=paragraphs)]
        answer = [say(text) for text in words(40_000, paragraphs=paragraphs)]
        found, cpu, wall = asyncio.run(stream(thought + answer, 2000, []))
        report_lag(f"60,000 characters at 2,000 tok/s, {name}", found)
        print(f"  processor {cpu:.2f} s of {wall:.2f} s, with the watcher of the lag")
    long = [say(text) for text in words(60_000, paragraphs=True)]
    slow = [say(text) for text in words(400, paragraphs=True)]
    for name, before in (("a first answer", []), ("after 60,000 characters", long)):
        _, cpu, wall = asyncio.run(stream(slow, 10, before, is_watched=False))
        print(f"10 tok/s, {name}: processor {100 * cpu / wall:.1f} % of a core")
    print(f"idle: {100 * asyncio.run(idle(5.0)):.2f} % of a core")
    print(f"paste of 200 KB: {asyncio.run(paste(200_000)):.3f} s")
    print(f"first frame: {statistics.median(first_frame() for _ in range(5)):.2f} s")


if __name__ == "__main__":
    main()
