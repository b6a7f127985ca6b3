"""One conversation in the worker: its state and the points it can go back to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localglm.engine.protocol import Continuation
from localglm.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from localglm.arrays import F32
    from localglm.engine.model_port import (
        Known,
        MarkedText,
        ModelPort,
        Prepared,
        StatePort,
        TextPort,
    )
    from localglm.engine.protocol import Prompt

POINTS_KEPT = 4
"""Places of one session to go back to, beside those with a handle."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place to go back to: tokens, their text, and the ``logits`` [n] after them if kept."""

    snapshot: Any
    tokens: tuple[int, ...]
    text: MarkedText
    logits: F32 | None = None


@dataclass(frozen=True, slots=True)
class Reuse:
    """Where a prompt starts: at ``point`` (None: where the state is), ``cached`` tokens in.

    ``logits`` [n] are there when the prompt needs no reading at all.
    """

    cached: int
    point: Point | None
    logits: F32 | None = None
    is_fresh: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a session is made of: the model, its limits, and how ids become text."""

    model: ModelPort
    context: int
    cache_type: str
    marked: Callable[[Sequence[int]], MarkedText]

    def new_state(self) -> StatePort:
        """Return an empty sequence."""
        state: StatePort = self.model.new_state(context=self.context, cache_type=self.cache_type)
        return state


class Session:
    """A state with the points it can go back to.

    ``unfinished`` is what an answer that was cut goes on from: every id so far, and its mode;
    ``why_finished`` says why there is none.
    """

    def __init__(self, recipe: Recipe, state: StatePort | None = None) -> None:
        self.recipe = recipe
        self.state = recipe.new_state() if state is None else state
        self.handles: dict[str, Point] = {}
        self.unfinished: Prepared | None = None
        self.why_finished = "nothing was written in this session since the engine was started"
        self._points: list[Point] = []

    def prepare(self, text: TextPort, prompt: Prompt) -> Prepared:
        """Turn a prompt into ids; what the session knows keeps its own ids.

        Raises: RequestError when there is no cut answer to continue, or the prompt cannot be read.
        """
        if not isinstance(prompt, Continuation):
            return text.prepare(prompt, self.known(), self.recipe.context)
        if self.unfinished is None:
            raise RequestError(
                "there is no answer to go on with",
                why=self.why_finished,
                try_="send a prompt, or the last one again",
            )
        return self.unfinished

    # -- what can be reused --------------------------------------------------------------------
    def reuse(self, ids: Sequence[int]) -> Reuse:
        """Say where the prompt ``ids`` can start, without changing anything.

        A prompt needs the logits after its last token, so at least that token is read unless a
        point has them.
        """
        wanted = tuple(ids)
        here = self.state.tokens
        options = [
            Reuse(
                len(point.tokens), point, point.logits if len(point.tokens) == len(wanted) else None
            )
            for point in self._all_points()
            if self._fits(point, wanted) and self.state.can_restore(point.snapshot)
        ]
        if len(here) < len(wanted) and wanted[: len(here)] == here:
            options.append(Reuse(len(here), None))
        return max(options, key=lambda reuse: reuse.cached, default=Reuse(0, None, is_fresh=True))

    @staticmethod
    def _fits(point: Point, wanted: tuple[int, ...]) -> bool:
        count = len(point.tokens)
        if count > len(wanted) or wanted[:count] != point.tokens:
            return False
        return count < len(wanted) or point.logits is not None

    def enter(self, reuse: Reuse) -> None:
        """Bring the state where ``reuse`` starts."""
        if reuse.is_fresh:
            self.reset()
        elif reuse.point is not None:
            self.state.restore(reuse.point.snapshot)
        elif self.state.position:
            self.keep()

    def reset(self) -> None:
        """Start from nothing; kept points are lost."""
        self._points.clear()
        self.handles.clear()
        self.finish("the session was started again")
        self.state = self.recipe.new_state()

    def finish(self, why: str) -> None:
        """Note that there is no cut answer to go on with, and why."""
        self.unfinished, self.why_finished = None, why

    # -- points --------------------------------------------------------------------------------
    def keep(self, logits: F32 | None = None) -> Point:
        """Remember this place; the oldest of too many is forgotten."""
        point = self._here(logits)
        self._points = [p for p in self._points if p.tokens != point.tokens][-(POINTS_KEPT - 1) :]
        self._points.append(point)
        return point

    def drop_old_points(self) -> int:
        """Forget every place but the newest and those with a handle; returns how many."""
        dropped = len(self._points[:-1])
        del self._points[:-1]
        return dropped

    def name(self, handle: str) -> None:
        """Keep this place under a handle until it is dropped."""
        self.handles[handle] = self._here()

    def go_to(self, handle: str) -> None:
        """Go back to a named place.

        Raises: RequestError when the conversation has since gone another way.
        """
        self.state.restore(self.handles[handle].snapshot)

    def recover(self, before: Any | None) -> None:
        """Leave a broken or unfinished pass: back to the snapshot ``before``, or to nothing."""
        if before is not None and self.state.can_restore(before):
            self.state.restore(before)
        else:
            self.reset()

    def known(self) -> list[Known]:
        """Return text and ids of every place a prompt may go on from, the longest first."""
        tokens = self.state.tokens
        places = [(point.text, point.tokens) for point in self._all_points()]
        return sorted([*places, (self.recipe.marked(tokens), tokens)], key=lambda p: -len(p[1]))

    def _here(self, logits: F32 | None = None) -> Point:
        tokens = self.state.tokens
        return Point(self.state.snapshot(), tokens, self.recipe.marked(tokens), logits)

    def _all_points(self) -> list[Point]:
        return [*self._points, *self.handles.values()]

    @property
    def point_count(self) -> int:
        """Points kept, named ones included."""
        return len(self._points) + len(self.handles)

    def fork(self) -> Session:
        """Return an independent copy; it starts without points."""
        out = Session(self.recipe, self.state.fork())
        out.unfinished, out.why_finished = self.unfinished, self.why_finished
        return out


class Sessions:
    """The conversations of one model by name; the longest unused of too many is forgotten."""

    def __init__(self, recipe: Recipe, limit: int = 4) -> None:
        self._recipe = recipe
        self._limit = limit
        self._made = 0
        self.by_name: dict[str, Session] = {}

    def get(self, name: str) -> Session:
        """Return the session, made when there is none, and mark it as used."""
        session = self.by_name.pop(name, None)
        if session is None:
            session = Session(self._recipe)
        self._add(name, session)
        return session

    def fork(self, name: str, target: str) -> None:
        """Copy a session under another name.

        Raises: RequestError when there is no such session.
        """
        self._add(target, self._known(name).fork())

    def snapshot(self, name: str) -> str:
        """Keep the state of a session; returns the handle.

        Raises: RequestError when there is no such session.
        """
        session = self._known(name)
        self._made += 1
        handle = f"{name}#{self._made}"
        session.name(handle)
        return handle

    def restore(self, handle: str) -> None:
        """Go back to a kept state.

        Raises: RequestError when the handle is unknown or no longer valid.
        """
        self._owner(handle).go_to(handle)

    def drop(self, *, handle: str | None, session: str | None) -> None:
        """Forget a kept state, a session, or both.

        Raises: RequestError when there is nothing of that name.
        """
        if handle is not None:
            del self._owner(handle).handles[handle]
        if session is not None:
            self._known(session)
            del self.by_name[session]

    def drop_old_points(self) -> int:
        """Forget all but the newest place of every session; returns how many."""
        return sum(session.drop_old_points() for session in self.by_name.values())

    def _add(self, name: str, session: Session) -> None:
        self.by_name.pop(name, None)
        self.by_name[name] = session
        while len(self.by_name) > self._limit:
            del self.by_name[next(iter(self.by_name))]

    def _known(self, name: str) -> Session:
        if name not in self.by_name:
            raise RequestError(
                f"there is no session {name!r}",
                why=f"known sessions: {', '.join(self.by_name) or 'none'}",
                try_="send a prompt to it first",
            )
        return self.by_name[name]

    def _owner(self, handle: str) -> Session:
        for session in self.by_name.values():
            if handle in session.handles:
                return session
        raise RequestError(
            f"the kept state {handle!r} is gone",
            why="it was dropped, its session was forgotten, or the engine was started again",
            try_="send the conversation again; it is read from the nearest state there is",
        )
