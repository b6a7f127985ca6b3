"""One request: prompt in, answer out, until a token, a string, a limit or the user ends it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from localglm.engine.checks import check_generate
from localglm.engine.loops import ANSWER_SPAN, THINKING_SPAN, is_repeating
from localglm.engine.output import Output
from localglm.engine.protocol import (
    Done,
    FinishReason,
    Generate,
    Notice,
    Prefill,
    Timings,
    Usage,
)
from localglm.engine.reading import Reader
from localglm.engine.sampler import Sampler
from localglm.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.arrays import F32
    from localglm.engine.control import Control, Status
    from localglm.engine.model_port import OpenedModel, Prepared
    from localglm.engine.protocol import Event
    from localglm.engine.session import Session


@dataclass(frozen=True, slots=True)
class Desk:
    """What a generation works with."""

    opened: OpenedModel
    session: Session
    status: Status
    control: Control
    send: Callable[[Event], None]
    between: Callable[[], None]
    watch: Callable[[], None]
    context: int
    chunk: int


@dataclass(slots=True)
class _Tally:
    """Counts and times of one request."""

    begun: float = field(default_factory=time.perf_counter)
    prefill_s: float = 0.0
    decode_s: float = 0.0
    first_token_s: float | None = None
    cached: int = 0
    thinking: int = 0
    tokens: list[int] = field(default_factory=list)
    steps_s: list[float] = field(default_factory=list)


class Generation:
    """Runs one ``Generate`` request."""

    def __init__(self, desk: Desk, request: Generate) -> None:
        self._desk = desk
        self._request = request
        self._tally = _Tally()
        self._written: list[int] = []
        self._reader = Reader(desk.opened, desk.session, desk.status, desk.control, desk.watch)
        self._is_chat = False

    def run(self) -> Done:
        """Read the prompt, write the answer, return the closing event.

        Raises: UsageError for a bad value, RequestError for a prompt that does not fit,
        NumericFaultError.
        """
        request, desk = self._request, self._desk
        check_generate(request)
        sampler = Sampler(request.sampling)
        desk.status.tick("rendering the prompt")
        prepared = desk.session.prepare(desk.opened.text, request.prompt)
        self._is_chat = prepared.is_chat
        sampler.note_prompt(prepared.ids)
        output = Output(request.request, desk.opened.text.output(prepared), request.stop)
        self._refuse_what_does_not_fit(prepared)
        desk.session.finish("the last prompt failed before its answer ended")
        logits = self._read(prepared)
        reason: FinishReason = "cancelled"
        if logits is not None:
            reason = self._write(logits, sampler, output, self._limit(prepared))
        is_thinking = output.is_thinking
        for event in output.finish():
            desk.send(event)
        if logits is None:
            desk.session.finish("the last prompt was stopped before its answer began")
        elif reason in {"cancelled", "length"}:
            written = [*prepared.ids, *self._written]
            desk.session.unfinished = replace(prepared, ids=written, is_thinking=is_thinking)
        else:
            desk.session.finish("the last answer ended by itself")
        return self._done(reason, prepared, sampler, output)

    def _refuse_what_does_not_fit(self, prepared: Prepared) -> None:
        prompt, wanted, context = len(prepared.ids), self._request.max_tokens, self._desk.context
        if prompt == 0:
            raise RequestError(
                "the prompt is empty",
                why="a model needs at least one token to go on from",
                try_="give some text",
            )
        if prompt > context or (wanted is None and prompt == context):
            raise RequestError(
                f"the prompt has {prompt} tokens and the context holds {context}",
                why="no room is left for an answer",
                try_="shorten the prompt, start a new conversation, or use a larger --context",
            )
        if wanted is not None and prompt + wanted > context:
            raise RequestError(
                f"{prompt} prompt tokens and {wanted} new ones do not fit a context of {context}",
                why=f"{context - prompt} tokens are left for the answer",
                try_=f"ask for at most {context - prompt} tokens, or use a larger --context",
            )

    def _limit(self, prepared: Prepared) -> int:
        wanted = self._request.max_tokens
        return self._desk.context - len(prepared.ids) if wanted is None else wanted

    # -- prompt --------------------------------------------------------------------------------
    def _read(self, prepared: Prepared) -> F32 | None:
        desk, begun = self._desk, time.perf_counter()
        reuse = desk.session.reuse(prepared.ids)
        desk.session.enter(reuse)
        logits = reuse.logits
        self._tally.cached = reuse.cached
        if logits is not None:
            total = len(prepared.ids)
            request = self._request.request
            desk.send(Prefill(request=request, done=total, total=total, cached=total))
        else:
            logits = self._reader.read_prompt(
                self._request.request, prepared.ids, reuse.cached, desk.chunk, self._tell
            )
            if logits is not None:
                desk.session.keep(logits)
        self._tally.prefill_s = time.perf_counter() - begun
        return logits

    def _tell(self, event: Event) -> None:
        self._desk.send(event)
        self._desk.between()

    # -- answer --------------------------------------------------------------------------------
    def _write(self, logits: F32, sampler: Sampler, output: Output, limit: int) -> FinishReason:
        begun = time.perf_counter()
        try:
            return self._loop(logits, sampler, output, limit)
        finally:
            self._tally.decode_s = time.perf_counter() - begun

    def _loop(self, logits: F32, sampler: Sampler, output: Output, limit: int) -> FinishReason:
        desk, tally = self._desk, self._tally
        ends = frozenset() if self._request.ignore_end else desk.opened.text.end_of_turn
        while len(tally.tokens) < limit:
            if desk.control.is_cancelled:
                return "cancelled"
            token = sampler.choose(logits)
            tally.tokens.append(token)
            if tally.first_token_s is None:
                tally.first_token_s = time.perf_counter() - tally.begun
            if token in ends:
                return "tool_calls" if output.has_tool_calls else "end"
            tally.thinking += output.is_thinking
            self._push(output, token)
            if output.matched_stop is not None:
                return "stop"
            feed = [token, *self._closing(output)]
            for extra in feed[1:]:
                self._push(output, extra)
            if self._is_stuck(output):
                return "length"
            if desk.session.state.position + len(feed) > desk.context:
                return "length"
            if len(tally.tokens) < limit:
                logits = self._step(feed)
        return "length"

    def _push(self, output: Output, token: int) -> None:
        self._written.append(token)
        for event in output.push(token):
            self._desk.send(event)

    def _step(self, feed: list[int]) -> F32:
        begun = time.perf_counter()
        self._desk.opened.verify()
        self._desk.between()
        logits = self._reader.read_step(feed)
        self._tally.steps_s.append(time.perf_counter() - begun)
        return logits

    def _closing(self, output: Output) -> tuple[int, ...]:
        """Return the ids that end the thinking when the user, the budget or a loop demands it."""
        control, tally = self._desk.control, self._tally
        if not output.is_thinking:
            control.wants_answer = False
            return ()
        budget = control.thinking_budget
        if self._is_chat and is_repeating(tally.tokens, THINKING_SPAN):
            self._notice("the thinking repeated itself and was ended")
        elif budget is not None and tally.thinking >= budget:
            self._notice(f"the thinking reached its budget of {budget} tokens and was ended")
        elif not control.wants_answer:
            return ()
        control.wants_answer = False
        return self._desk.opened.text.close_thinking

    def _is_stuck(self, output: Output) -> bool:
        stuck = (
            self._is_chat
            and not self._request.ignore_end
            and not output.is_thinking
            and is_repeating(self._tally.tokens, ANSWER_SPAN)
        )
        if stuck:
            self._notice("the answer repeated itself and was ended")
        return stuck

    def _notice(self, text: str) -> None:
        self._desk.send(Notice(request=self._request.request, text=text))

    # -- account -------------------------------------------------------------------------------
    def _done(
        self, reason: FinishReason, prepared: Prepared, sampler: Sampler, output: Output
    ) -> Done:
        tally, steps = self._tally, self._tally.steps_s
        read = max(0, min(self._desk.session.state.position, len(prepared.ids)) - tally.cached)
        return Done(
            request=self._request.request,
            reason=reason,
            usage=Usage(
                prompt=len(prepared.ids),
                cached=tally.cached,
                read=read,
                generated=len(tally.tokens),
                thinking=tally.thinking,
            ),
            timings=Timings(
                prefill_s=tally.prefill_s,
                decode_s=tally.decode_s,
                first_token_s=tally.first_token_s,
                prefill_tokens_per_s=_rate(read, tally.prefill_s),
                decode_tokens_per_s=_rate(len(steps), sum(steps)),
                steps_s=tuple(steps) if self._request.step_times else (),
            ),
            seed=sampler.seed,
            matched_stop=output.matched_stop,
        )


def _rate(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens and seconds > 0 else None
