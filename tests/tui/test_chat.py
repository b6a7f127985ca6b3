"""A user chats: ask, think, stop, continue, answer again, edit, and go between versions."""

from __future__ import annotations

from at_screen import User, at_screen
from fake_engine import Crash, FakeEngine, Gate, done, say, think

from localglm.engine import protocol as p
from localglm.tui.answering import Answering
from localglm.tui.bridge import Piece
from localglm.tui.entries import TurnEntry
from localglm.tui.turns import Turn


@at_screen(lambda: FakeEngine([say("**Hello** you")]))
async def test_a_question_gets_its_answer(user: User) -> None:
    await user.asks("hi")
    await user.sees("Hello you")
    assert "hi" in user.screen
    assert user.engine.requests[0].prompt.messages[-1].content == "hi"


GATE = "gate"


def gated(*before: object, after: object = None) -> FakeEngine:
    gate = Gate()
    engine = FakeEngine([*before, gate, after or say("the rest")])
    engine.gate = gate
    return engine


@at_screen(lambda: gated(say("part one")))
async def test_one_escape_stops_keeps_and_marks_the_answer(user: User) -> None:
    await user.sends("hi")
    await user.sees("part one")
    await user.presses("escape")
    await user.sees("stopped by you")
    assert "part one" in user.screen
    assert "the rest" not in user.screen
    assert user.chat.turns.last.text == "part one"


@at_screen(lambda: FakeEngine([say("one "), done("length")], [say("two")]))
async def test_continue_goes_on_in_the_same_answer(user: User) -> None:
    await user.asks("hi")
    await user.sees("cut at the limit")
    await user.presses("f4")
    await user.sees("one two")
    assert isinstance(user.engine.requests[1].prompt, p.Continuation)
    assert "cut at the limit" not in user.screen


@at_screen(lambda: FakeEngine([say("whole")]))
async def test_continue_of_a_whole_answer_is_explained(user: User) -> None:
    await user.asks("hi")
    await user.presses("f4")
    await user.sees("there is no answer to go on with")
    assert len(user.engine.requests) == 1


@at_screen(lambda: gated(think("let me see"), after=say("42")))
async def test_thinking_is_one_line_until_space_opens_it(user: User) -> None:
    await user.sends("hi")
    await user.sees("▸ thinking")
    assert "let me see" not in user.screen
    await user.presses("space")
    await user.sees("let me see")
    await user.presses("space")
    await user.until(lambda: "let me see" not in user.screen)
    user.engine.gate.open()
    await user.sees("thought for")


@at_screen(lambda: gated(think("hm"), after=say("now")))
async def test_f3_ends_the_thinking_and_the_answer_comes(user: User) -> None:
    await user.sends("hi")
    await user.sees("F3 answers now")
    await user.presses("f3")
    await user.sees("now")
    assert user.engine.generations[0].ends_thinking.is_set()
    assert user.chat.turns.last.state == "complete"


@at_screen(lambda: FakeEngine([say("first")], [say("second")]))
async def test_answering_again_makes_a_version_and_arrows_go_back(user: User) -> None:
    await user.asks("hi")
    await user.presses("f5")
    await user.sees("second")
    await user.sees("version 2 of 2")
    await user.presses("tab", "left")
    await user.sees("first")
    assert "second" not in user.screen
    await user.presses("right")
    await user.sees("second")


def dear() -> FakeEngine:
    engine = FakeEngine([say("first")], [say("second")])
    engine.plan = p.PlanReply(request=1, total=4000, cached=880, read=3120)
    return engine


@at_screen(dear)
async def test_a_dear_second_answer_tells_its_price_first(user: User) -> None:
    await user.asks("hi")
    await user.presses("f5")
    await user.sees("reads 3,120 of 4,000 tokens again, about 4 min 20 s")
    assert len(user.engine.requests) == 1
    await user.presses("f5")
    await user.sees("second")


@at_screen(dear)
async def test_editing_tells_its_price_and_branches(user: User) -> None:
    await user.asks("hi")
    await user.presses("f6")
    await user.sees("reads 3,120 of 4,000 tokens again")
    assert user.chat.prompt.text == "hi"
    await user.asks(" there")
    messages = user.engine.requests[1].prompt.messages
    assert [each.content for each in messages] == ["hi there"]
    await user.sees("version 2 of 2")


@at_screen(dear)
async def test_escape_leaves_an_edit_as_it_was(user: User) -> None:
    await user.asks("hi")
    await user.presses("f6")
    await user.sees("editing")
    await user.presses("escape")
    await user.until(lambda: user.chat.prompt.text == "")
    await user.asks("next")
    assert len(user.engine.requests[1].prompt.messages) == 3


@at_screen(lambda: FakeEngine([say("half"), Crash()], [say("again")]))
async def test_a_crash_shows_a_panel_and_the_chat_goes_on(user: User) -> None:
    await user.asks("hi")
    await user.sees("error: the engine ended")
    await user.sees("why: signal 9")
    await user.sees("try: send it again")
    await user.sees("the engine runs again")
    assert "half" in user.screen
    await user.asks("more")
    await user.sees("again")


@at_screen(lambda: gated(say("a")))
async def test_a_message_sent_meanwhile_waits_its_turn(user: User) -> None:
    await user.sends("first")
    await user.sees("writing")
    await user.sends("second")
    await user.sees("one message waits")
    assert len(user.engine.requests) == 1
    user.engine.gate.open()
    await user.until(lambda: len(user.engine.requests) == 2)
    assert user.engine.requests[1].prompt.messages[-1].content == "second"


@at_screen(lambda: gated(p.Prefill(request=1, done=600, total=1000, cached=250,
                                   tokens_per_s=45.0, seconds_left=9.0)))  # fmt: skip
async def test_reading_shows_speed_time_left_and_what_was_kept(user: User) -> None:
    await user.sends("hi")
    await user.sees("600/1,000 tokens · 25 % kept · 45 tok/s · 9.0 s left")
    assert "▓▓▓▓▓███████░" in user.screen


@at_screen(lambda: FakeEngine([say("x"), p.Notice(request=1, text="the answer repeated itself")]))
async def test_a_loop_that_was_ended_is_said(user: User) -> None:
    await user.asks("hi")
    await user.sees("! the answer repeated itself")


@at_screen(lambda: FakeEngine([think("a"), think("b"), say("c"), say("d"), done()]))
async def test_after_an_answer_the_line_says_what_can_be_done_next(user: User) -> None:
    await user.asks("hi")
    await user.sees("Enter sends")
    assert "Esc stops" not in user.screen


def test_the_pace_counts_what_came_after_the_first_frame() -> None:
    now = [0.0]
    answering = Answering(TurnEntry(Turn("assistant")), clock=lambda: now[0])
    answering.take(Piece("answer", "a" * 50, 50))
    assert answering.rate is None
    now[0] = 2.0
    answering.take(Piece("answer", "b" * 10, 10))
    assert answering.rate == 5.0
    assert answering.turn.text == "a" * 50 + "b" * 10
