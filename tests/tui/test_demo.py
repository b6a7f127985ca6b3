"""The screen on the real engine with the demo model."""

from __future__ import annotations

import psutil
from at_screen import User, at_screen

from localglm import paths
from localglm.cli.request_options import Chosen
from localglm.engine.client import Engine
from localglm.tui.last import NO_FLAGS

CHOSEN = Chosen.of(NO_FLAGS | {"temperature": "0", "seed": "1"})
REAL = {
    "make_engine": Engine,
    "open_request": CHOSEN.open_model,
    "generate_request": lambda prompt, _controls: CHOSEN.generate(prompt),
    "model": paths.demo_model(),
}


class Nobody:
    """Stands where the fake engine would."""

    requests: tuple[object, ...] = ()


@at_screen(Nobody, **REAL)
async def test_a_user_asks_stops_continues_and_answers_again(user: User) -> None:
    await user.sees("16,384 left")
    await user.sends("/think off")
    await user.sends("Hello")
    await user.until(lambda: user.chat.answering is not None)
    await user.until(lambda: user.chat.answering is None)
    first = user.chat.turns.last
    assert first.state == "complete"
    assert first.text
    assert not first.thinking
    await user.presses("f5")
    await user.sees("version 2 of 2")
    await user.until(lambda: user.chat.answering is None)
    assert user.chat.turns.last.text == first.text
    assert user.chat.last_done.usage.read == 0


@at_screen(Nobody, **REAL)
async def test_a_killed_engine_comes_back_and_the_chat_goes_on(user: User) -> None:
    await user.sees("16,384 left")
    engine = user.app.bridge._engine
    await user.sends("Tell me what you are, at length.")
    await user.until(lambda: user.chat.answering is not None and user.chat.answering.tokens)
    psutil.Process(engine.pid).kill()
    await user.sees("the engine runs again")
    await user.sees("try:")
    await user.sends("Hello")
    await user.until(lambda: user.chat.turns.last.state == "complete")
    assert user.chat.turns.last.text
