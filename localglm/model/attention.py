"""The two attention sublayers. Input x [t, d] is normalised; output [t, d] carries no residual."""

from __future__ import annotations

import math
from dataclasses import dataclass

from localglm.arrays import AnyArray
from localglm.backends.base import Buffer, Cells, Device
from localglm.model.geometry import Geometry
from localglm.model.journal import Journal, KdaRows, MlaRows, scan_kda
from localglm.model.layer_state import KdaState, MlaState
from localglm.model.probe import Probe
from localglm.model.runs import conv_scan_parts, products
from localglm.model.weights import IndexerWeights, KdaWeights, MlaWeights


@dataclass(frozen=True, slots=True)
class Pass:
    """One chunk on its way through the layers. ``first`` is the position of its first token."""

    device: Device
    geometry: Geometry
    probe: Probe
    first: int
    count: int
    journal: Journal | None = None

    def fed(self, name: str, value: Buffer) -> Buffer:
        """Record a value, or put the probe's replacement in its place."""
        other = self.probe.replacement(name, self.first, self.count)
        out = value if other is None else self.device.upload(other)
        self.probe.record(name, out)
        return out


def kda(run: Pass, index: int, w: KdaWeights, state: KdaState, x: Buffer) -> Buffer:
    """Linear attention with a decaying matrix per head; token by token, in prompts too."""
    dev, g = run.device, run.geometry
    query, key, value, decay_low, gate_low, beta = products(
        dev, (w.query, w.key, w.value, w.decay_down, w.gate_down, w.beta), x
    )
    decay_raw = dev.matmul(w.decay_up, decay_low)
    rows = KdaRows(
        query,
        key,
        value,
        dev.kda_decay(decay_raw, w.decay_bias, w.decay_rate, g.kda.gate_lower_bound),
        dev.sigmoid(beta),
        (w.filter_query, w.filter_key, w.filter_value),
    )
    if run.journal is not None:
        run.journal.add(index, rows)
    out = (
        _watched_scan(run, index, state, rows)
        if run.probe.is_watching
        else scan_kda(dev, state, rows)
    )
    gate = dev.reshape(dev.matmul(w.gate_up, gate_low), out.shape)
    gated = dev.gated_norm(out, w.norm, gate, g.norm_epsilon)
    width = g.kda.heads * g.kda.head_width
    return dev.matmul(w.output, dev.reshape(gated, (run.count, width)))


def _watched_scan(run: Pass, index: int, state: KdaState, rows: KdaRows) -> Buffer:
    """Advance the state op by op, and show the probe what lies between."""
    q, k, v, out = conv_scan_parts(
        run.device, rows.raw, rows.filters, state.windows, rows.decay, rows.beta, state.matrix
    )
    seen = {"q": q, "k": k, "v": v, "o": out, "g": rows.decay, "beta": rows.beta}
    for name, value in seen.items():
        run.probe.record(f"l{index}.kda_{name}", value)
    return out


def mla(
    run: Pass, name: str, index: int, w: MlaWeights, state: MlaState, x: Buffer,
    cells: Cells | None = None,
) -> tuple[Buffer, Cells]:  # fmt: skip
    """Latent attention over the cells the indexer keeps; ``cells`` replaces its choice.

    Returns the output [t, d] and the cells attended. ``name`` prefixes what the probe sees.
    """
    dev, g, t = run.device, run.geometry, run.count
    m = g.mla
    ix = w.indexer
    low_raw, latent_raw, key_raw, gates = products(
        dev, (w.query_down, w.latent_down, ix.key, ix.gate), x
    )
    low = dev.rms_norm(low_raw, w.query_norm, g.norm_epsilon)
    run.probe.record(f"{name}q_resid", low)
    latents = dev.rms_norm(latent_raw, w.latent_norm, g.norm_epsilon)
    state.latents.append(latents)
    keys = dev.layer_norm(key_raw, ix.key_norm_weight, ix.key_norm_bias, g.layer_norm_epsilon)
    rows = MlaRows(latents, keys, gates, ix.slot_bias)
    chosen = _index(run, name, ix, state, x, low, rows, index)
    cells = _forced_cells(run, name) or cells or chosen
    run.probe.record_cells(f"{name}idx_selected", cells)
    query = dev.reshape(dev.matmul(w.query_up, low), (t, m.heads, m.key_width))
    absorbed = dev.head_matmul(w.key_up, query)
    context = dev.mla_attend(absorbed, state.latents.rows, cells, 1.0 / math.sqrt(m.key_width))
    values = dev.reshape(dev.head_matmul(w.value_up, context), (t, m.heads * m.value_width))
    return dev.matmul(w.output, values), cells


def _index(
    run: Pass, name: str, w: IndexerWeights, state: MlaState, x: Buffer, low: Buffer,
    rows: MlaRows, index: int,
) -> Cells:  # fmt: skip
    """Feed the indexer's caches from the first token on, then choose the cells."""
    dev, ix = run.device, run.geometry.indexer
    run.probe.record(f"{name}idx_k", rows.keys)
    run.probe.record(f"{name}idx_gate", rows.gates)
    if run.journal is not None:
        run.journal.add(index, rows)
    state.append_indexer(rows.keys, rows.gates, rows.slot_bias)
    complete = (run.first + run.count) // ix.pool
    keeps_all = complete <= ix.pools_kept and ix.select_tail
    if keeps_all and not run.probe.is_watching:
        return dev.dense_cells(run.count, run.first)
    query = dev.reshape(dev.matmul(w.query, low), (run.count, ix.heads, ix.width))
    head_weight = dev.matmul(w.head_weight, x)
    scores = dev.indexer_scores(query, head_weight, state.pools.rows, run.first, ix.pool)
    for key, value in (("idx_q", query), ("idx_w", head_weight), ("idx_scores", scores)):
        run.probe.record(f"{name}{key}", value)
    return dev.select_cells(scores, run.first, ix.pool, ix.pools_kept, ix.select_tail)


def _forced_cells(run: Pass, name: str) -> Cells | None:
    """Turn a recorded selection mask [t, cells] into cells."""
    mask = run.probe.replacement(f"{name}idx_selected", run.first, run.count)
    return None if mask is None else cells_of_mask(run.device, mask)


def cells_of_mask(device: Device, mask: AnyArray) -> Cells:
    """Turn a boolean mask [t, cells] into ascending cell lists."""
    import numpy as np  # noqa: PLC0415 - only traces come here

    count = mask.sum(axis=1).astype(np.int32)
    index = np.zeros((mask.shape[0], max(1, int(count.max()))), np.int32)
    for row, chosen in enumerate(mask):
        cells = np.flatnonzero(chosen)
        index[row, : len(cells)] = cells
    return Cells(device.upload(index), device.upload(count))
