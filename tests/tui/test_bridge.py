"""The bridge: events become few frames, nothing is lost, and nobody waits on the engine."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from fake_engine import Crash, FakeEngine, Gate, say, think
from hypothesis import given
from hypothesis import strategies as st

from localglm.engine import protocol as p
from localglm.errors import ModelFileError
from localglm.tui.bridge import FRAME_S, Bridge, Broke, Came, Frames, Piece, Restarted

REQUEST = p.Generate(request=0, prompt=p.TextPrompt("x"))


class Listener:
    """Takes every batch as soon as it is due."""

    def __init__(self) -> None:
        self.news: list[Any] = []
        self.came = threading.Condition()
        self.frames = Frames(self.wake)

    def wake(self, _wait: float) -> None:
        with self.came:
            self.news += self.frames.take()
            self.came.notify_all()

    def wait_for(self, kind: type) -> Any:
        with self.came:
            assert self.came.wait_for(lambda: any(isinstance(n, kind) for n in self.news), 20)
        return next(n for n in self.news if isinstance(n, kind))


@pytest.fixture
def listener() -> Listener:
    return Listener()


@given(st.lists(st.tuples(st.sampled_from(["thinking", "answer"]), st.text(), st.booleans())))
def test_no_text_is_lost_and_its_order_stays(parts: list[tuple[str, str, bool]]) -> None:
    frames = Frames(lambda _wait: None)
    out: list[Any] = []
    for kind, text, takes in parts:
        frames.add(p.Delta(request=1, kind=kind, text=text))
        if takes:
            out += frames.take()
    out += frames.take()
    for kind in ("thinking", "answer"):
        got = "".join(piece.text for piece in out if piece.kind == kind)
        assert got == "".join(text for each, text, _ in parts if each == kind)
    assert sum(piece.tokens for piece in out) == len(parts)


def test_a_thousand_deltas_are_one_piece_and_one_wake() -> None:
    wakes: list[float] = []
    frames = Frames(wakes.append)
    for _ in range(1000):
        frames.add(say("a"))
    assert wakes == [0.0]
    assert frames.take() == [Piece("answer", "a" * 1000, 1000)]


def test_frames_come_at_most_fifteen_times_a_second() -> None:
    now = [0.0]
    wakes: list[float] = []
    frames = Frames(wakes.append, clock=lambda: now[0])
    frames.add(say("a"))
    frames.take()
    now[0] = 0.01
    frames.add(say("b"))
    assert wakes == [0.0, pytest.approx(FRAME_S - 0.01)]
    frames.take()
    now[0] = 5.0
    frames.add(say("c"))
    assert wakes[-1] == 0.0


def test_only_the_last_progress_of_a_frame_counts() -> None:
    frames = Frames(lambda _wait: None)
    for read in range(5):
        frames.add(p.Prefill(request=1, done=read, total=5, cached=0))
    assert [news.done for news in frames.take()] == [4]


def test_work_is_taken_while_the_engine_is_busy(listener: Listener) -> None:
    gate = Gate()
    bridge = Bridge(lambda: FakeEngine([gate, say("a")]), listener.frames)
    bridge.generate(REQUEST)
    bridge.ask("stats", p.Stats(request=0))
    assert isinstance(listener.wait_for(Came).reply, p.StatsReply)
    assert not any(isinstance(news, p.Done) for news in listener.news)
    gate.open()
    listener.wait_for(p.Done)
    bridge.close()


def test_a_request_is_cancelled_even_before_it_began(listener: Listener) -> None:
    gate = Gate()
    engine = FakeEngine([gate, say("a")])
    ready = threading.Event()

    def slow() -> FakeEngine:
        assert ready.wait(20)
        return engine

    bridge = Bridge(slow, listener.frames)
    bridge.generate(REQUEST)
    bridge.cancel()
    ready.set()
    assert listener.wait_for(p.Done).reason == "cancelled"
    bridge.close()


def test_a_crash_is_told_and_the_engine_comes_back(listener: Listener) -> None:
    engine = FakeEngine([think("hm"), Crash()], [say("fine")])
    bridge = Bridge(lambda: engine, listener.frames)
    bridge.generate(REQUEST)
    assert listener.wait_for(Broke).error.try_
    listener.wait_for(Restarted)
    bridge.generate(REQUEST)
    listener.wait_for(p.Done)
    bridge.close()


def test_a_model_that_does_not_open_is_told(listener: Listener) -> None:
    engine = FakeEngine()
    engine.open_error = ModelFileError("no model", why="no file", try_="demo")
    bridge = Bridge(lambda: engine, listener.frames)
    bridge.open(p.OpenModel(request=0, path="x"))
    assert listener.wait_for(Broke).was == "open"
    bridge.close()
    assert engine.is_stopped
