"""Reading tokens into a session: in chunks, watched, and checked for NaN."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from localglm.engine.control import Control, Status, StepCancelledError, StepProbe
from localglm.engine.places import in_words
from localglm.engine.protocol import Prefill
from localglm.errors import NumericFaultError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from localglm.arrays import F32, AnyArray
    from localglm.backends.base import Buffer
    from localglm.engine.model_port import OpenedModel
    from localglm.engine.protocol import Event
    from localglm.engine.session import Session

_DIAGNOSED_TOKENS = 8


class Reader:
    """Feeds tokens of one request to the model."""

    def __init__(
        self,
        opened: OpenedModel,
        session: Session,
        status: Status,
        control: Control,
        watch: Callable[[], None],
    ) -> None:
        self._opened = opened
        self._session = session
        self._status = status
        self._control = control
        self._watch = watch

    def read_prompt(
        self,
        request: int,
        ids: Sequence[int],
        cached: int,
        chunk: int,
        send: Callable[[Event], None],
    ) -> F32 | None:
        """Read ``ids[cached:]`` and return the logits after the last token; None when cancelled.

        A cancelled prompt leaves the session at the last whole chunk.
        """
        total, begun = len(ids), time.perf_counter()
        send(Prefill(request=request, done=cached, total=total, cached=cached))
        logits: F32 | None = None
        before: Any = None
        for start in range(cached, total, chunk):
            stop = min(start + chunk, total)
            before = None  # its memory serves the next one
            if start:
                before = self._session.state.snapshot()
            try:
                self._opened.verify()
                logits = self._forward(ids[start:stop], is_last=stop == total, may_leave=True)
            except StepCancelledError:
                self._session.recover(before)
                return None
            send(_progress(request, stop, total, cached, time.perf_counter() - begun))
        assert logits is not None, "a prompt has at least one token to read"
        return logits

    def read_step(self, ids: Sequence[int]) -> F32:
        """Feed generated tokens and return the logits after the last."""
        logits = self._forward(ids, is_last=True, may_leave=False)
        assert logits is not None
        return logits

    def _forward(self, ids: Sequence[int], *, is_last: bool, may_leave: bool) -> F32 | None:
        first = self._session.state.position
        what = "reading tokens" if may_leave else "writing token"
        stage = f"{what} {first} to {first + len(ids) - 1}" if may_leave else f"{what} {first}"
        if may_leave and self._control.is_cancelled:
            raise StepCancelledError
        self._status.tick(stage)
        self._opened.begin_pass(len(ids))
        probe = StepProbe(self._status, stage, self._control, self._watch, may_leave=may_leave)
        state, model = self._session.state, self._opened.model
        try:
            rows = model.forward(state, ids, logits="last" if is_last else "none", probe=probe)
        except NumericFaultError as error:
            raise self._fault(ids, first, error.what) from error
        self._status.tick(stage)
        if rows is None:
            return None
        row: F32 = np.asarray(rows[-1], np.float32)
        if not bool(np.isfinite(row).all()):
            bad = int(np.count_nonzero(~np.isfinite(row)))
            raise self._fault(ids, first, f"{bad} of {row.size} logits are NaN or infinite")
        return row[: self._opened.text.vocabulary_size]

    def _fault(self, ids: Sequence[int], first: int, seen: str) -> NumericFaultError:
        """Name where the first bad value appears when the last tokens are read by themselves.

        Raises: ModelFileError when the file changed meanwhile, which is the true reason then.
        """
        self._opened.verify(at_once=True)
        reached = self._status.place
        self._status.tick("looking for the value that is not finite")
        probe = _FaultProbe(self._opened)
        tail = list(ids[-_DIAGNOSED_TOKENS:])
        state = self._session.recipe.model.new_state(context=len(tail), cache_type="f32")
        # The same fault may stop this pass too; what was recorded before it is the answer.
        with contextlib.suppress(NumericFaultError):
            self._opened.model.forward(state, tail, logits="last", probe=probe)
        if probe.first_bad is not None:
            place = f"in {in_words(probe.first_bad)}"
        elif reached is not None:
            place = f"after {in_words(reached)}"
        else:
            place = "at the start of the model"
        return NumericFaultError(
            f"a value that is not finite appeared {place}, reading token {first + len(ids) - 1}",
            why=f"{seen}: a bad weight in the file, or a fault of the backend",
            try_="compare the checksum of the file with the published one, or download it again;"
            " --backend reference tells whether the backend is at fault",
        )


class _FaultProbe:
    """Remembers the first intermediate that is not finite."""

    is_watching = True

    def __init__(self, opened: OpenedModel) -> None:
        self._opened = opened
        self.first_bad: str | None = None

    def record(self, name: str, value: Buffer) -> None:
        """Check one intermediate."""
        if self.first_bad is None and not self._opened.is_finite(value):
            self.first_bad = name

    def record_cells(self, name: str, cells: Any) -> None:
        """Ignore chosen cells; they are integers."""

    def replacement(self, name: str, first: int, count: int) -> AnyArray | None:  # noqa: ARG002
        """Replace nothing."""
        return None


def _progress(request: int, done: int, total: int, cached: int, seconds: float) -> Prefill:
    rate = (done - cached) / seconds if seconds > 0 else None
    return Prefill(
        request=request,
        done=done,
        total=total,
        cached=cached,
        tokens_per_s=rate,
        seconds_left=None if rate is None else (total - done) / rate,
    )
