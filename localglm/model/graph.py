"""The forward pass of the trunk, written once over the op table.

Every back end runs this file; decoding, prompts and traces alike. The draft block is in
``model.draft`` and uses the same sublayers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from localglm.arrays import AnyArray
from localglm.backends.base import Buffer, Device, HyperMix, HyperParams
from localglm.errors import RequestError
from localglm.model.attention import Pass, kda, mla
from localglm.model.feedforward import feed_forward
from localglm.model.geometry import Geometry
from localglm.model.layer_state import KdaState
from localglm.model.probe import NoProbe, Probe
from localglm.model.state import State
from localglm.model.weights import HyperWeights, KdaWeights, LayerWeights, ModelWeights

LogitRows = Literal["last", "all", "none"]


@dataclass(frozen=True, slots=True)
class Output:
    """Result of a chunk: hidden [t, d] after the output norm, logits [1 or t, n] if asked for."""

    hidden: Buffer
    logits: AnyArray | None


class Model:
    """A model on a device. Holds no sequence: every sequence is a ``State``."""

    def __init__(self, geometry: Geometry, weights: ModelWeights, device: Device) -> None:
        self.geometry = geometry
        self.weights = weights
        self.device = device
        hyper = geometry.hyper
        self._hyper = HyperParams(
            hyper.streams, hyper.sinkhorn_rounds, hyper.epsilon, geometry.norm_epsilon
        )

    def new_state(self, *, context: int, cache_type: str = "f16") -> State:
        """Return an empty sequence of at most ``context`` tokens.

        ``cache_type`` is "f16" or "f32".
        """
        return State.new(self.device, self.geometry, context=context, cache_type=cache_type)

    def forward(
        self, state: State, ids: Sequence[int], *, logits: LogitRows = "last",
        probe: Probe | None = None,
    ) -> AnyArray | None:  # fmt: skip
        """Feed tokens and return logits [1 or t, vocabulary] on the host, or None for "none".

        Raises: RequestError for no tokens, an unknown token id or a full context.
        """
        return self.advance(state, ids, logits=logits, probe=probe).logits

    def advance(
        self, state: State, ids: Sequence[int], *, logits: LogitRows = "last",
        probe: Probe | None = None,
    ) -> Output:  # fmt: skip
        """Feed tokens like ``forward`` and also return the hidden rows the draft block reads."""
        tokens = self._checked(ids)
        state.begin(tokens)
        run = Pass(
            self.device, self.geometry, probe or NoProbe(), state.position, len(tokens),
            state.journal,
        )  # fmt: skip
        dev = self.device
        streams = dev.spread(dev.embed(self.weights.embedding, tokens), self.geometry.hyper.streams)
        for index in range(len(self.geometry.layers)):
            streams = self._block(run, index, streams, state)
        hidden = dev.rms_norm(
            dev.stream_mean(streams), self.weights.output_norm, self.geometry.norm_epsilon
        )
        run.probe.record("hidden", hidden)
        out = Output(hidden, self._logits(run, hidden, logits))
        state.commit(tokens)
        return out

    def _checked(self, ids: Sequence[int]) -> list[int]:
        tokens = [int(i) for i in ids]
        bad = next((i for i in tokens if not 0 <= i < self.geometry.vocabulary), None)
        if not tokens or bad is not None:
            raise RequestError(
                "no tokens were given" if bad is None else f"token id {bad} does not exist",
                why=f"the vocabulary has ids 0 to {self.geometry.vocabulary - 1}",
                try_="check that the ids were made with this model's tokenizer",
            )
        return tokens

    def _block(self, run: Pass, index: int, streams: Buffer, state: State) -> Buffer:
        w, layer, name = self.weights.layers[index], self.geometry.layers[index], f"l{index}."
        assert w.hyper_attn is not None
        assert w.hyper_ffn is not None
        eps = self.geometry.norm_epsilon

        mix = self._hyper_pre(run, f"{name}hc_attn_", streams, w.hyper_attn)
        x = run.fed(f"{name}attn_norm", run.device.rms_norm(mix.input, w.attn_norm, eps))
        y = self._attention(run, index, w, state, x)
        run.probe.record(f"{name}attn_out", y)
        streams = run.device.hyper_post(y, streams, mix.post, mix.comb)
        run.probe.record(f"{name}streams_mid", streams)

        mix = self._hyper_pre(run, f"{name}hc_ffn_", streams, w.hyper_ffn)
        x = run.fed(f"{name}ffn_norm", run.device.rms_norm(mix.input, w.ffn_norm, eps))
        later = self.weights.layers[index + 1 : index + 2]
        y = feed_forward(run, name, layer, w.ffn, x, later[0].ffn if later else None)
        run.probe.record(f"{name}ffn_out", y)
        streams = run.device.hyper_post(y, streams, mix.post, mix.comb)
        run.probe.record(f"{name}streams_out", streams)
        return streams

    def _hyper_pre(self, run: Pass, name: str, streams: Buffer, w: HyperWeights) -> HyperMix:
        mix = run.device.hyper_pre(streams, w.fn, w.base, w.scale, self._hyper)
        for key, value in (("in", mix.input), ("post", mix.post), ("comb", mix.comb)):
            run.probe.record(f"{name}{key}", value)
        return mix

    def _attention(self, run: Pass, index: int, w: LayerWeights, state: State, x: Buffer) -> Buffer:
        memory = state.layers[index]
        if isinstance(memory, KdaState):
            assert isinstance(w.attention, KdaWeights)
            return kda(run, index, w.attention, memory, x)
        assert not isinstance(w.attention, KdaWeights)
        return mla(run, f"l{index}.", index, w.attention, memory, x)[0]

    def _logits(self, run: Pass, hidden: Buffer, rows: LogitRows) -> AnyArray | None:
        if rows == "none":
            return None
        dev = self.device
        wanted = hidden if rows == "all" else dev.rows(hidden, run.count - 1, run.count)
        return dev.download(dev.matmul(self.weights.head, wanted))
