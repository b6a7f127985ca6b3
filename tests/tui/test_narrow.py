"""A terminal too narrow to show anything ends nothing, and what came meanwhile is there later."""

from __future__ import annotations

from at_screen import User, at_screen
from fake_engine import FakeEngine, say


@at_screen(lambda: FakeEngine([say("a late answer")]), size=(80, 24))
async def test_an_answer_that_came_without_any_room_is_shown_later(user: User) -> None:
    await user.pilot.resize_terminal(1, 24)
    await user.asks("a question")
    await user.pilot.resize_terminal(2, 3)
    await user.pilot.resize_terminal(80, 24)
    await user.sees("a late answer")
    assert user.app.fault is None
