"""Running a test as a user at a screen."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any

from fake_engine import program

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

_LIMIT_S = 20.0


class User:
    """Presses keys and looks at the screen."""

    def __init__(self, app: Any, pilot: Pilot[Any], engine: Any) -> None:
        self.app, self.pilot, self.engine = app, pilot, engine
        self.chat = app.chat

    async def presses(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def writes(self, text: str) -> None:
        self.chat.prompt.insert(text)
        await self.pilot.pause()

    async def sends(self, text: str) -> None:
        await self.writes(text)
        await self.pilot.press("enter")

    async def asks(self, text: str) -> None:
        """Send a question and wait for the whole answer."""
        before = len(self.engine.requests)
        await self.sends(text)
        await self.until(lambda: len(self.engine.requests) > before)
        await self.until(lambda: self.chat.answering is None)

    async def until(self, holds: Callable[[], Any]) -> None:
        async def wait() -> None:
            while not holds():
                await self.pilot.pause(0.005)

        await asyncio.wait_for(wait(), _LIMIT_S)
        await self.pilot.pause()

    async def sees(self, text: str) -> None:
        try:
            await self.until(lambda: text in self.screen)
        except TimeoutError:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.screen}") from None

    @property
    def screen(self) -> str:
        """What the terminal shows, as text."""
        screen = self.app.screen
        lines = screen._compositor.render_strips()
        return "\n".join("".join(s.text for s in strip).rstrip() for strip in lines)

    @property
    def transcript(self) -> str:
        return self.chat.transcript.plain


def at_screen(
    engine: Callable[[], Any], size: tuple[int, int] = (100, 30), **changes: Any
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Run an async test with a ``user`` at a screen of this size."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        async def play(**fixtures: Any) -> None:
            fake = engine()
            app = program(fake, **changes)
            try:
                async with app.run_test(size=size, notifications=True) as pilot:
                    await pilot.pause()
                    user = User(app, pilot, fake)
                    await test(user, **fixtures)
            finally:
                app.close()

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            asyncio.run(play(**fixtures))

        asked = inspect.signature(test)
        fixtures = [each for name, each in asked.parameters.items() if name != "user"]
        run.__signature__ = asked.replace(parameters=fixtures, return_annotation=None)
        return run

    return decorate
