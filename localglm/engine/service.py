"""The engine behind the protocol: obeys one request after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psutil
from msgspec import structs

from localglm.engine import protocol as p
from localglm.engine.control import Control, Status
from localglm.engine.failures import to_failed
from localglm.engine.generation import Desk, Generation
from localglm.engine.needs import context_in_force
from localglm.engine.own_memory import anonymous_bytes
from localglm.engine.pressure import Pressure
from localglm.engine.session import Recipe, Sessions
from localglm.errors import LocalGlmError, NumericFaultError, RequestError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from localglm.engine.model_port import OpenedModel, Opener
    from localglm.engine.selftest import DeviceOpener


class _Table:
    """An open model with its sessions and totals."""

    def __init__(self, request: p.OpenModel, opened: OpenedModel) -> None:
        self.opened = opened
        self.chunk = request.chunk
        self.context = context_in_force(request.context, opened.facts.context_length)
        self.sessions = Sessions(
            Recipe(opened.model, self.context, request.cache_type, opened.text.marked)
        )
        self.untold: list[str] = []
        self.pressure = Pressure(opened.expert_cache, self.sessions.drop_old_points)
        self.totals = p.StatsReply(
            request=0, requests=0, prompt_tokens=0, cached_tokens=0, generated_tokens=0,
            prefill_s=0.0, decode_s=0.0,
        )  # fmt: skip

    def count(self, done: p.Done) -> None:
        """Add one finished request to the totals."""
        before, usage, timings = self.totals, done.usage, done.timings
        self.totals = p.StatsReply(
            request=0,
            requests=before.requests + 1,
            prompt_tokens=before.prompt_tokens + usage.prompt,
            cached_tokens=before.cached_tokens + usage.cached,
            generated_tokens=before.generated_tokens + usage.generated,
            prefill_s=before.prefill_s + timings.prefill_s,
            decode_s=before.decode_s + timings.decode_s,
        )


class Service:
    """Obeys requests. ``send`` delivers events; ``status`` tells other threads what runs.

    ``between`` is called between the steps of a long request, to answer short ones.
    """

    def __init__(
        self,
        opener: Opener,
        send: Callable[[p.Event], None],
        status: Status,
        between: Callable[[], None] = lambda: None,
        devices: DeviceOpener | None = None,
    ) -> None:
        self._devices = devices
        self._between = between
        self._opener = opener
        self._send = send
        self._status = status
        self._table: _Table | None = None

    def obey(self, request: p.Request, control: Control) -> None:
        """Run one request to its last event; a failure is an event too."""
        self._status.request = request.request
        self.answer(request, control)
        self._status.request = None
        self._status.tick("waiting")

    def answer(self, request: p.Request, control: Control) -> None:
        """Run one request without taking over the status."""
        try:
            self._send(self._answer(request, control))
        except Exception as error:  # noqa: BLE001 - the edge of the process
            self._send(to_failed(request.request, error))

    def _answer(self, request: p.Request, control: Control) -> p.Event:
        if isinstance(request, p.Generate):
            return self._generate(request, control)
        if isinstance(request, p.OpenModel):
            return self._open(request)
        if isinstance(request, p.SelfTest):
            return self._self_test(request, control)
        answers: dict[type[Any], Callable[[Any], p.Event]] = {
            p.Account: self._account,
            p.CloseModel: self._close,
            p.Plan: self._plan,
            p.Memory: self._memory,
            p.Stats: self._stats,
            p.Snapshot: self._snapshot,
            p.Restore: self._restore,
            p.Fork: self._fork,
            p.Drop: self._drop,
        }
        return answers[type(request)](request)

    # -- kept states ---------------------------------------------------------------------------
    def _snapshot(self, request: p.Snapshot) -> p.Reply:
        handle = self._open_table().sessions.snapshot(request.session)
        return p.Reply(request=request.request, handle=handle)

    def _restore(self, request: p.Restore) -> p.Reply:
        self._open_table().sessions.restore(request.handle)
        return p.Reply(request=request.request)

    def _fork(self, request: p.Fork) -> p.Reply:
        self._open_table().sessions.fork(request.session, request.target)
        return p.Reply(request=request.request)

    def _drop(self, request: p.Drop) -> p.Reply:
        sessions = self._open_table().sessions
        sessions.drop(handle=request.handle, session=request.session)
        return p.Reply(request=request.request)

    # -- model ---------------------------------------------------------------------------------
    def _open(self, request: p.OpenModel) -> p.Opened:
        _check_open(request)
        self.close()

        def progress(stage: str, done: int, total: int) -> None:
            self._status.tick(f"opening the model: {stage}")
            self._send(p.Loading(request=request.request, stage=stage, done=done, total=total))

        self._status.tick("opening the model")
        opened = self._opener(request, progress)
        facts = opened.facts
        self._table = _Table(request, opened)
        return p.Opened(
            request=request.request,
            path=request.path,
            files=facts.files,
            architecture=facts.architecture,
            backend=facts.backend,
            context=self._table.context,
            vocabulary=facts.vocabulary,
            weight_bytes=facts.weight_bytes,
            token_bytes=facts.token_bytes,
            notes=facts.notes,
            plan=facts.plan,
        )

    def _account(self, request: p.Account) -> p.AccountReply:
        from localglm.engine.opening import account  # noqa: PLC0415 - loads the back end

        _check_open(request.open)
        self.close()
        plan, context = account(request.open)
        return p.AccountReply(request=request.request, plan=plan, context=context)

    def rest(self) -> None:
        """Look whether others need memory; called now and then while nothing is asked."""
        if self._table is not None:
            self._table.untold += self._table.pressure.relieve()

    def _close(self, request: p.CloseModel) -> p.Reply:
        self.close()
        return p.Reply(request=request.request)

    def close(self) -> None:
        """Free the model; harmless when none is open."""
        table, self._table = self._table, None
        if table is not None:
            table.sessions.by_name.clear()
            table.opened.close()

    def _open_table(self) -> _Table:
        if self._table is None:
            raise RequestError(
                "no model is open", why="the request needs one", try_="open a model first"
            )
        return self._table

    # -- requests ------------------------------------------------------------------------------
    def _generate(self, request: p.Generate, control: Control) -> p.Done:
        table = self._open_table()
        table.opened.verify()
        session = table.sessions.get(request.session)

        def watch() -> None:
            table.untold += table.pressure.relieve()
            for text in table.untold:
                self._send(p.Notice(request=request.request, text=text))
            table.untold.clear()

        desk = Desk(
            table.opened, session, self._status, control, self._send, self._between,
            watch, table.context, table.chunk,
        )  # fmt: skip
        try:
            done = Generation(desk, request).run()
        except BaseException as error:
            is_ours = isinstance(error, LocalGlmError) and not isinstance(error, NumericFaultError)
            if not is_ours:
                session.reset()
            raise
        table.count(done)
        return done

    def _self_test(self, request: p.SelfTest, control: Control) -> p.SelfTested:
        from localglm.engine import devices, selftest  # noqa: PLC0415 - loads every definition

        self.close()
        opener = self._devices or devices.open_device
        desk = selftest.Bench(request, self._send, self._status, control)
        return selftest.run(desk, opener)

    def _plan(self, request: p.Plan) -> p.PlanReply:
        table = self._open_table()
        session = table.sessions.get(request.session)
        ids = session.prepare(table.opened.text, request.prompt).ids
        cached = session.reuse(ids).cached
        return p.PlanReply(
            request=request.request, total=len(ids), cached=cached, read=len(ids) - cached
        )

    def _memory(self, request: p.Memory) -> p.MemoryReply:
        table = self._open_table()
        report = table.opened.memory()
        sessions = table.sessions.by_name
        return p.MemoryReply(
            request=request.request,
            weights=report.weights,
            buffers=report.buffers,
            mapped=report.mapped,
            sessions={name: s.state.nbytes for name, s in sessions.items()},
            snapshots=sum(s.point_count for s in sessions.values()),
            process=int(psutil.Process().memory_info().rss),
            own=anonymous_bytes(),
            plan=table.opened.facts.plan,
        )

    def _stats(self, request: p.Stats) -> p.StatsReply:
        table = self._open_table()
        sessions = {n: s.state.position for n, s in table.sessions.by_name.items()}
        counts = table.opened.expert_counts()
        if counts is not None:
            counts = structs.replace(counts, shortages=table.pressure.shortages)
        return structs.replace(
            table.totals, request=request.request, sessions=sessions, experts=counts
        )


def _check_open(request: p.OpenModel) -> None:
    for name in ("chunk", "context", "threads", "memory"):
        _check_positive(name, getattr(request, name))


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise UsageError(
            f"{name} = {value} is out of range",
            why="accepted: 1 or more",
            try_=f"leave {name} out to use the default",
        )
