"""A user sets the thinking, looks at figures, and moves between chats."""

from __future__ import annotations

from pathlib import Path

from at_screen import User, at_screen
from fake_engine import FakeEngine, Gate, say, think

from localglm.engine import protocol as p
from localglm.tui.begin import Last


@at_screen(FakeEngine)
async def test_ctrl_t_goes_through_the_levels_and_the_footer_tells(user: User) -> None:
    await user.sees("think high · no budget · folded")
    for level in ("max", "off", "low", "high"):
        await user.presses("ctrl+t")
        await user.sees(f"think {level} · no budget")
    await user.sends("/set nothink")
    await user.asks("hi")
    assert user.engine.requests[0].prompt.effort == "off"


@at_screen(FakeEngine)
async def test_an_unknown_level_lists_the_levels(user: User) -> None:
    await user.sends("/think maximum")
    await user.sees("the levels are off, low, high, max")
    await user.asks("hi")
    assert user.engine.requests[0].prompt.effort == "high"


def waiting() -> FakeEngine:
    return FakeEngine([think("hm"), Gate(), say("x")])


@at_screen(waiting)
async def test_a_budget_holds_for_the_running_answer_too(user: User) -> None:
    await user.sends("/budget 2,000")
    await user.sees("budget 2,000")
    await user.sends("hi")
    await user.sees("thinking")
    await user.sends("/budget 50")
    await user.until(lambda: user.engine.generations[0].budgets == [50])
    assert user.engine.requests[0].thinking_budget == 2000
    await user.sends("/budget none")
    await user.sees("no budget")
    await user.sends("/budget -1")
    await user.sees("is no number of tokens")


@at_screen(waiting)
async def test_f7_shows_every_thinking(user: User) -> None:
    await user.sends("hi")
    await user.sees("▸ thinking")
    await user.presses("f7")
    await user.sees("│ hm")
    await user.sees("· shown")


@at_screen(FakeEngine)
async def test_stats_and_memory_are_shown_as_bars(user: User) -> None:
    await user.asks("hi")
    await user.sends("/stats")
    await user.sees("time of the last answer")
    await user.sees("5 tokens written, 200.0 ms each")
    await user.sends("/memory")
    await user.sees("weights")
    await user.sees("the engine process takes 5.0 GiB")


@at_screen(FakeEngine, size=(120, 60))
async def test_help_lists_every_key_and_command(user: User) -> None:
    await user.presses("f1")
    await user.sees("keys and commands")
    for word in ("/think, ctrl+t", "/export", "/model", "/exit, ctrl+q"):
        assert word in user.transcript


@at_screen(FakeEngine)
async def test_the_palette_does_what_it_names(user: User) -> None:
    await user.presses("ctrl+p")
    await user.presses(*"statistics")
    await user.until(lambda: "Where" in user.screen or "where the time" in user.screen)
    await user.presses("enter")
    await user.sees("since the model was opened")


@at_screen(lambda: FakeEngine([say("about whales")], [say("about trees")]))
async def test_chats_are_listed_searched_and_opened(user: User) -> None:
    await user.asks("first question")
    await user.presses("ctrl+n")
    await user.asks("second question")
    await user.presses("ctrl+r")
    await user.sees("first question")
    await user.presses(*"whales")
    await user.until(lambda: "second question" not in user.screen)
    await user.presses("enter")
    await user.sees("about whales")
    assert "about trees" not in user.screen


@at_screen(FakeEngine)
async def test_a_chat_is_renamed_and_deleted_after_a_second_press(user: User) -> None:
    await user.asks("question")
    await user.presses("ctrl+r")
    await user.sees("Del deletes")
    await user.presses("f2", "end", *" new", "enter")
    await user.sees("question new")
    await user.presses("delete")
    await user.sees("Del again deletes")
    await user.presses("delete")
    await user.sees("no chat is like that")
    await user.presses("escape")
    await user.until(lambda: user.app.screen is user.chat)
    assert user.transcript.strip() == ""


@at_screen(FakeEngine)
async def test_an_export_writes_a_new_file_and_never_over_another(
    user: User, tmp_path: Path
) -> None:
    await user.asks("question")
    await user.sends(f"/export md {tmp_path}/out.md")
    await user.sees("written to")
    assert "question" in (tmp_path / "out.md").read_text()
    await user.sends(f"/export md {tmp_path}/out.md")
    await user.sees("cannot write")
    await user.sends("/export pdf")
    await user.sees("a chat cannot be written as pdf")


@at_screen(lambda: FakeEngine([say("one")], [say("two")]))
async def test_a_fork_leaves_the_first_chat_as_it_is(user: User) -> None:
    await user.asks("question")
    before = user.chat.turns
    await user.sends("/fork")
    await user.asks("more")
    assert len(before.path()) == 2
    assert [turn.text for turn in user.chat.turns.path()] == ["question", "one", "more", "two"]


@at_screen(FakeEngine)
async def test_a_system_message_begins_a_new_chat(user: User) -> None:
    await user.sends("/system be brief")
    await user.asks("hi")
    roles = [each.role for each in user.engine.requests[0].prompt.messages]
    assert roles == ["system", "user"]


@at_screen(FakeEngine, model=None)
async def test_the_first_run_shows_the_machine_and_enter_starts_a_chat(user: User) -> None:
    await user.sees("demo")
    await user.sees("cpu: the processor always works")
    await user.sees("8 GiB")
    await user.presses("enter")
    await user.until(lambda: user.engine.opened)
    await user.asks("hi")
    await user.sees("hello")


@at_screen(FakeEngine, model=None, last=Last(Path("demo.gguf"), None))
async def test_a_later_run_opens_the_last_model_at_once(user: User) -> None:
    await user.until(lambda: user.engine.opened)
    assert user.app.screen is user.chat


@at_screen(FakeEngine)
async def test_ctrl_c_twice_leaves_and_once_only_stops(user: User) -> None:
    await user.presses("ctrl+c")
    assert not user.app._exit
    await user.presses("ctrl+c")
    await user.until(lambda: user.app._exit)


@at_screen(FakeEngine)
async def test_bye_leaves(user: User) -> None:
    await user.sends("/bye")
    await user.until(lambda: user.app._exit)


@at_screen(FakeEngine)
async def test_another_model_is_opened_by_name(user: User) -> None:
    await user.sends("/model /tmp/other.gguf")
    await user.until(lambda: len(user.engine.opened) == 2)
    assert user.engine.opened[1] == p.OpenModel(request=0, path="/tmp/other.gguf")
