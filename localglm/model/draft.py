"""The draft (MTP) block: an MLA block with a plain residual that guesses one token further.

Row m takes the token after position m and the trunk's hidden row m, and predicts token m + 2. Its
caches must be filled over the whole prompt before it is of use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localglm.arrays import AnyArray
from localglm.backends.base import Buffer, Cells
from localglm.errors import RequestError
from localglm.model.attention import Pass, mla
from localglm.model.feedforward import feed_forward
from localglm.model.graph import Model
from localglm.model.layer_state import MlaState
from localglm.model.probe import NoProbe, Probe
from localglm.model.weights import DraftWeights, MlaWeights

DRAFT_LAYER = -1


@dataclass(frozen=True, slots=True)
class DraftOutput:
    """Result of a draft pass: hidden [t, d], also the next step's input, logits [t, n], cells."""

    hidden: Buffer
    logits: AnyArray
    cells: Cells


class Draft:
    """The draft block of a model, with the caches of one sequence."""

    def __init__(self, model: Model, *, context: int, cache_type: str = "f16") -> None:
        weights, layer = model.weights.draft, model.geometry.draft
        if weights is None or layer is None:
            raise RequestError(
                "this model cannot draft",
                why="its file has no draft block",
                try_="use a file that includes the nextn tensors",
            )
        self._model = model
        self._weights: DraftWeights = weights
        self._layer = layer
        self.state = MlaState.new(model.device, model.geometry, cache_type, context)

    @property
    def position(self) -> int:
        """Rows in the block's caches."""
        return self.state.latents.count

    def step(
        self, following: Sequence[int], hidden: Buffer, *, cells: Cells | None = None,
        zero_first: bool = False, probe: Probe | None = None,
    ) -> DraftOutput:  # fmt: skip
        """Run rows; ``following[i]`` is the token after the position of ``hidden[i]``.

        Shapes: hidden [t, d]. ``cells`` reuses an earlier selection, ``zero_first`` zeroes the
        first embedding row.
        """
        model, w, dev = self._model, self._weights, self._model.device
        eps = model.geometry.norm_epsilon
        run = Pass(dev, model.geometry, probe or NoProbe(), self.position, len(following))
        x = self._joined(following, hidden, zero_first=zero_first)
        run.probe.record("mtp.input", x)
        x = self._isolated(run, "mtp.input", x)
        assert isinstance(w.layer.attention, MlaWeights)
        normed = dev.rms_norm(x, w.layer.attn_norm, eps)
        y, attended = mla(
            run, "mtp.", DRAFT_LAYER, w.layer.attention, self.state, normed, cells
        )  # fmt: skip
        run.probe.record("mtp.attn_out", y)
        x = dev.add(x, self._isolated(run, "mtp.attn_out", y))
        y = feed_forward(
            run, "mtp.", self._layer, w.layer.ffn, dev.rms_norm(x, w.layer.ffn_norm, eps)
        )
        run.probe.record("mtp.ffn_out", y)
        x = dev.add(x, y)
        run.probe.record("mtp.out", x)
        out = dev.rms_norm(x, w.output_norm, eps)
        run.probe.record("mtp.h", out)
        return DraftOutput(out, dev.download(dev.matmul(w.head, out)), attended)

    def _joined(self, following: Sequence[int], hidden: Buffer, *, zero_first: bool) -> Buffer:
        """eh_proj of [norm(embedding); norm(hidden)], the embedding half first."""
        dev, w, eps = self._model.device, self._weights, self._model.geometry.norm_epsilon
        embedded = dev.embed(w.embedding, following)
        if zero_first:
            rows = dev.download(embedded).copy()
            rows[0] = 0
            embedded = dev.upload(rows)
        halves = dev.concat(
            dev.rms_norm(embedded, w.embedding_norm, eps), dev.rms_norm(hidden, w.hidden_norm, eps)
        )
        return dev.matmul(w.join, halves)

    @staticmethod
    def _isolated(run: Pass, name: str, computed: Buffer) -> Buffer:
        """Return the recorded output when a trace isolates sublayers, else the computed one."""
        recorded = run.probe.replacement(name, run.first, run.count)
        return computed if recorded is None else run.device.upload(recorded)

    def chain(self, first: DraftOutput, steps: int, *, share_cells: bool) -> DraftChain:
        """Draft ``steps`` tokens greedily after ``first``, feeding back token and hidden row.

        ``share_cells`` reuses the cells of the last row of ``first`` instead of running the indexer
        again.
        """
        dev = self._model.device
        last = first.logits.shape[0] - 1
        hidden, row = dev.rows(first.hidden, last, last + 1), first.logits[last]
        cells = (
            Cells(
                dev.rows(first.cells.index, last, last + 1),
                dev.rows(first.cells.count, last, last + 1),
            )
            if share_cells
            else None
        )
        ids, logits = [int(np.argmax(row))], [row]
        while len(ids) < steps:
            out = self.step([ids[-1]], hidden, cells=cells)
            hidden, row = out.hidden, out.logits[0]
            ids.append(int(np.argmax(row)))
            logits.append(row)
        return DraftChain(tuple(ids), np.stack(logits))


@dataclass(frozen=True, slots=True)
class DraftChain:
    """Drafted ids and the logits [steps, n] each was taken from."""

    ids: tuple[int, ...]
    logits: AnyArray
