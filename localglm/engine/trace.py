"""Run a model over given ids and write every number of the run to an archive.

Arrays carry the names of the oracle archives: ``logits``, ``gen_logits``, ``l3.idx_scores``,
``mtp.chain_own_ids`` and so on. Caches are float32 and every op runs unfused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from localglm.arrays import AnyArray
from localglm.backends.base import Buffer, Device
from localglm.engine.trace_files import check_feed
from localglm.engine.trace_probe import TraceProbe
from localglm.errors import UsageError
from localglm.gguf import open_model
from localglm.model.draft import Draft, DraftOutput
from localglm.model.geometry import Geometry
from localglm.model.graph import Model
from localglm.model.inventory import survey
from localglm.model.layer_state import KdaState
from localglm.model.load import load_surveyed
from localglm.model.state import State

_DRAFT_STEPS = 3


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """What to run. ``chunk`` None: the whole prompt at once. ``feed`` holds recorded arrays."""

    ids: tuple[int, ...]
    chunk: int | None = None
    generate: int = 0
    layers: bool = False
    feed: dict[str, AnyArray] | None = None


def trace_model(
    path: Path, request: TraceRequest, device: Device, progress: Callable[[int], None] | None = None
) -> dict[str, AnyArray]:
    """Run ``request`` on ``device`` and return every array.

    ``progress`` is called with the tokens done, prompt and continuation.
    Raises: UsageError when the request does not fit the model.
    """
    with open_model(path) as file:
        found = survey(file)
        _check_request(request, found.geometry)
        geometry, weights = load_surveyed(file, found, device)
        run = _Trace(Model(geometry, weights, device), request, progress)
        return {name: _narrow(array) for name, array in run.arrays().items()}


def _check_request(request: TraceRequest, geometry: Geometry) -> None:
    wanted = len(request.ids) + request.generate
    if wanted > geometry.context_length:
        raise UsageError(
            f"{wanted} tokens are more than the model can hold",
            why=f"its context is {geometry.context_length} tokens",
            try_="give fewer ids or a smaller --generate",
        )
    largest = max(request.ids)
    if largest >= geometry.vocabulary:
        raise UsageError(
            f"token id {largest} does not exist",
            why=f"the vocabulary has ids 0 to {geometry.vocabulary - 1}",
            try_="check that the ids were made with this model's tokenizer",
        )
    check_feed(request.feed or {}, geometry, len(request.ids))


def _narrow(array: AnyArray) -> AnyArray:
    if array.dtype == np.float64:
        return array.astype(np.float32)
    return array.astype(np.int32) if array.dtype == np.int64 else array


class _Trace:
    """One run: the prompt, the draft block over it, then the greedy continuation."""

    def __init__(
        self, model: Model, request: TraceRequest, progress: Callable[[int], None] | None
    ) -> None:
        self.model = model
        self.device = model.device
        self.request = request
        self.progress = progress or (lambda _done: None)
        self.feed = request.feed or {}
        self.tokens = len(request.ids)
        self.context = self.tokens + max(request.generate, _DRAFT_STEPS) + 1
        self.state = model.new_state(context=self.context, cache_type="f32")

    def arrays(self) -> dict[str, AnyArray]:
        """Run everything and collect the arrays."""
        out: dict[str, AnyArray] = {"prompt": np.array(self.request.ids, np.int32)}
        probe = self._probe()
        logits, hidden = self._prompt(probe)
        out["logits"] = logits
        out["hidden"] = np.concatenate([self.device.download(h) for h in hidden])
        out |= probe.arrays(self.tokens, self.model.geometry.indexer.pool)
        if self.request.layers:
            out |= self._states("")
        following = (*self.request.ids[1:], int(np.argmax(logits[-1])))
        if self.model.weights.draft is not None:
            out |= self._draft(following, hidden)
        out |= self._generate(following[-1])
        return out

    def _probe(self) -> TraceProbe:
        return TraceProbe(self.device, self.request.layers, self.feed)

    def _spans(self) -> list[tuple[int, int]]:
        step = self.request.chunk or self.tokens
        return [(a, min(a + step, self.tokens)) for a in range(0, self.tokens, step)]

    def _prompt(self, probe: TraceProbe) -> tuple[AnyArray, list[Buffer]]:
        logits, hidden = [], []
        for start, stop in self._spans():
            out = self.model.advance(
                self.state, self.request.ids[start:stop], logits="all", probe=probe
            )
            logits.append(out.logits)
            hidden.append(out.hidden)
            self.progress(stop)
        return np.concatenate([x for x in logits if x is not None]), hidden

    def _generate(self, first: int) -> dict[str, AnyArray]:
        if not self.request.generate:
            return {}
        ids, rows = [first], list[AnyArray]()
        while len(rows) < self.request.generate:
            logits = self.model.forward(self.state, [ids[-1]])
            assert logits is not None
            rows.append(logits[0])
            self.progress(self.tokens + len(rows))
            ids.append(int(np.argmax(logits[0])))
        out = {"gen_ids": np.array(ids[:-1], np.int32), "gen_logits": np.stack(rows)}
        return out | (self._states("gen_") if self.request.layers else {})

    def _states(self, prefix: str) -> dict[str, AnyArray]:
        return state_arrays(self.state, self.device, prefix, self.tokens if prefix else 0)

    # -- draft block -----------------------------------------------------------------------------
    def _draft(self, following: tuple[int, ...], hidden: list[Buffer]) -> dict[str, AnyArray]:
        probe = self._probe()
        draft, last, logits = self._draft_prompt(following, hidden, probe, zero_first=False)
        out = {"mtp.logits": logits}
        if self.request.layers:
            get, state = self.device.download, draft.state
            out["mtp.mla_cache"] = get(state.latents.rows)[: self.tokens]
            out["mtp.idx_pool_k"] = get(state.pools.rows)[: state.pools.count]
        out |= probe.arrays(self.tokens, self.model.geometry.indexer.pool)
        kept = draft.state.fork()
        for tag, share in (("own", False), ("shared", True)):
            draft.state = kept.fork()
            chain = draft.chain(last, _DRAFT_STEPS, share_cells=share)
            out[f"mtp.chain_{tag}_ids"] = np.array(chain.ids, np.int32)
            out[f"mtp.chain_{tag}_logits"] = chain.logits
        silent = TraceProbe(self.device, keep=False, recorded={})
        _, _, zeroed = self._draft_prompt(following, hidden, silent, zero_first=True)
        return out | {"mtp_zero0.logits": zeroed}

    def _draft_prompt(
        self, following: tuple[int, ...], hidden: list[Buffer], probe: TraceProbe, *,
        zero_first: bool,
    ) -> tuple[Draft, DraftOutput, AnyArray]:  # fmt: skip
        draft = Draft(self.model, context=self.context, cache_type="f32")
        logits: list[AnyArray] = []
        fed = self.feed.get("hidden")
        for (start, stop), computed in zip(self._spans(), hidden, strict=True):
            rows = computed if fed is None else self.device.upload(fed[start:stop])
            out = draft.step(
                following[start:stop], rows, zero_first=zero_first and start == 0, probe=probe
            )
            logits.append(out.logits)
        return draft, out, np.concatenate(logits)


def state_arrays(state: State, device: Device, prefix: str, first: int) -> dict[str, AnyArray]:
    """Return the memory of every layer: KDA matrices and windows, latent rows from ``first``."""
    out: dict[str, AnyArray] = {}
    get = device.download
    for index, layer in enumerate(state.layers):
        name = f"l{index}.{prefix}"
        if isinstance(layer, KdaState):
            windows = (layer.window_query, layer.window_key, layer.window_value)
            out[f"{name}kda_state"] = np.array(get(layer.matrix))
            out[f"{name}kda_conv_state"] = np.concatenate([get(w).T for w in windows])
        else:
            out[f"{name}mla_cache"] = np.array(get(layer.latents.rows)[first : state.position])
            if not prefix:
                out[f"{name}idx_pool_k"] = np.array(get(layer.pools.rows)[: layer.pools.count])
    return out
