"""The op table of the reference device: unwrap handles, call ``ops.reference``, wrap the results.

Every method is one op of ``backends.base.Ops``; its definition is the function of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.backends.base import Cells, HyperMix, Routing
from localglm.backends.reference.weights import ReferenceExperts, ReferenceMatrix
from localglm.errors import ShapeError
from localglm.ops.reference import (
    attention,
    elementwise,
    hyper,
    indexer,
    kda,
    norms,
    products,
    routing,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from localglm.arrays import F64, AnyArray
    from localglm.backends.base import Buffer, Experts, HyperParams, Matrix
    from localglm.backends.reference.weights import DecodedPieces


def array_of(buffer: Buffer) -> AnyArray:
    """Return the array behind a buffer of this device."""
    if not isinstance(buffer, np.ndarray):
        raise ShapeError(f"a {type(buffer).__name__} is not a buffer of the reference device")
    return buffer


def matrix_of(matrix: Matrix, axes: int) -> ReferenceMatrix:
    """Return the matrix behind a handle of this device; it must have ``axes`` axes."""
    if not isinstance(matrix, ReferenceMatrix):
        raise ShapeError(f"a {type(matrix).__name__} is not a matrix of the reference device")
    if len(matrix.shape) != axes:
        raise ShapeError(f"{matrix.name}: {matrix.shape} has not {axes} axes")
    return matrix


class ReferenceOps:
    """Ops on numpy buffers; ``decoded`` holds the float64 copies of weights."""

    def __init__(self, decoded: DecodedPieces) -> None:
        self.decoded = decoded

    # -- products -----------------------------------------------------------------------------
    def embed(self, table: Matrix, ids: Sequence[int]) -> Buffer:
        """Decode rows ``ids``."""
        held = matrix_of(table, 2)
        asked = np.asarray(ids, dtype=np.int64)
        # Only the rows asked for are decoded: row i of the gathered table answers the i-th id.
        products.embed(np.empty((held.shape[0], 0)), asked)
        return self.decoded.gather(held, asked)

    def matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply by a weight, piece by piece."""
        rows, held = array_of(x), matrix_of(weight, 2)
        parts = [products.matmul(piece, rows) for piece in self.decoded.pieces(held)]
        return np.concatenate(parts, axis=1)

    def head_matmul(self, weight: Matrix, x: Buffer) -> Buffer:
        """Multiply each head by its own matrix."""
        held = matrix_of(weight, 3)
        stack = np.stack([self.decoded.whole(held, h) for h in range(held.shape[0])])
        return products.head_matmul(stack, array_of(x))

    def expert_ffn(self, experts: Experts, x: Buffer, ids: Buffer, limit: float | None) -> Buffer:
        """Run the chosen experts, decoding only those."""
        if not isinstance(experts, ReferenceExperts):
            raise ShapeError(f"a {type(experts).__name__} is not of the reference device")
        parts = [matrix_of(m, 3) for m in (experts.gate, experts.up, experts.down)]

        def expert(e: int) -> tuple[F64, F64, F64]:
            if not 0 <= e < parts[0].shape[0]:
                raise ShapeError(f"expert_ffn: expert {e} of {parts[0].shape[0]}")
            g, u, d = (self.decoded.whole(m, e) for m in parts)
            return g, u, d

        return products.expert_ffn(expert, array_of(x), array_of(ids), limit)

    # -- element-wise and norms ---------------------------------------------------------------
    def swiglu(self, gate: Buffer, up: Buffer, limit: float | None) -> Buffer:
        """Gate, clamped."""
        return elementwise.swiglu(array_of(gate), array_of(up), limit)

    def rms_norm(self, x: Buffer, weight: Buffer, epsilon: float) -> Buffer:
        """Scale rows to unit root mean square."""
        return norms.rms_norm(array_of(x), array_of(weight), epsilon)

    def layer_norm(self, x: Buffer, weight: Buffer, bias: Buffer, epsilon: float) -> Buffer:
        """Centre rows and scale them to unit variance."""
        return norms.layer_norm(array_of(x), array_of(weight), array_of(bias), epsilon)

    def add(self, x: Buffer, y: Buffer) -> Buffer:
        """Add."""
        return elementwise.add(array_of(x), array_of(y))

    def concat(self, x: Buffer, y: Buffer) -> Buffer:
        """Join on the last axis."""
        return elementwise.concat(array_of(x), array_of(y))

    # -- hyper-connections --------------------------------------------------------------------
    def spread(self, x: Buffer, streams: int) -> Buffer:
        """Copy into every stream."""
        return hyper.spread(array_of(x), streams)

    def hyper_pre(
        self, streams: Buffer, fn: Matrix, base: Buffer, scale: Buffer, params: HyperParams
    ) -> HyperMix:
        """Collapse the streams for one site."""
        x = array_of(streams)
        if x.shape[1:2] != (params.streams,):
            raise ShapeError(f"hyper_pre: {params.streams} streams expected, {x.shape} given")
        held = self.decoded.whole(matrix_of(fn, 2))
        mix = hyper.hyper_pre(
            x,
            held,
            array_of(base),
            array_of(scale),
            rounds=params.rounds,
            epsilon=params.epsilon,
            norm_epsilon=params.norm_epsilon,
        )
        return HyperMix(*mix)

    def hyper_post(self, y: Buffer, streams: Buffer, post: Buffer, comb: Buffer) -> Buffer:
        """Write an output back into the streams."""
        return hyper.hyper_post(array_of(y), array_of(streams), array_of(post), array_of(comb))

    def stream_mean(self, streams: Buffer) -> Buffer:
        """Average the streams."""
        return hyper.stream_mean(array_of(streams))

    # -- linear attention (KDA) ---------------------------------------------------------------
    def short_conv(self, raw: Buffer, filters: Buffer, window: Buffer) -> Buffer:
        """Convolve; ``window`` in place."""
        return kda.short_conv(array_of(raw), array_of(filters), array_of(window))

    def kda_decay(self, raw: Buffer, bias: Buffer, rate: Buffer, lower_bound: float) -> Buffer:
        """Log decay."""
        return kda.kda_decay(array_of(raw), array_of(bias), array_of(rate), lower_bound)

    def sigmoid(self, x: Buffer) -> Buffer:
        """Logistic function."""
        return elementwise.sigmoid(array_of(x))

    def kda_scan(
        self, query: Buffer, key: Buffer, value: Buffer, decay: Buffer, beta: Buffer, state: Buffer
    ) -> Buffer:
        """Gated delta rule; ``state`` in place."""
        q, k, v, g, b, m = (array_of(a) for a in (query, key, value, decay, beta, state))
        return kda.kda_scan(q, k, v, g, b, m)

    def gated_norm(self, x: Buffer, weight: Buffer, gate: Buffer, epsilon: float) -> Buffer:
        """Norm per head, then gate."""
        return norms.gated_norm(array_of(x), array_of(weight), array_of(gate), epsilon)

    # -- latent attention (MLA) with the pooled indexer ---------------------------------------
    def store_rows(self, cache: Buffer, rows: Buffer, start: int) -> None:
        """Write rows into a cache; in place."""
        attention.store_rows(array_of(cache), array_of(rows), start)

    def pool_keys(self, keys: Buffer, gates: Buffer, slot_bias: Buffer) -> Buffer:
        """Compress complete pools."""
        return indexer.pool_keys(array_of(keys), array_of(gates), array_of(slot_bias))

    def indexer_scores(
        self, query: Buffer, head_weight: Buffer, pools: Buffer, first_position: int, pool: int
    ) -> Buffer:
        """Score the pools."""
        q, w, p = array_of(query), array_of(head_weight), array_of(pools)
        return indexer.indexer_scores(q, w, p, first_position, pool)

    def select_cells(
        self, scores: Buffer, first_position: int, pool: int, pools_kept: int, select_tail: bool
    ) -> Cells:
        """Choose cells."""
        return Cells(
            *indexer.select_cells(
                array_of(scores), first_position, pool, pools_kept, select_tail=select_tail
            )
        )

    def dense_cells(self, count: int, first_position: int) -> Cells:
        """Choose every cell up to the position."""
        return Cells(*indexer.dense_cells(count, first_position))

    def mla_attend(self, query: Buffer, latents: Buffer, cells: Cells, scale: float) -> Buffer:
        """Attend in latent space."""
        index, count = array_of(cells.index), array_of(cells.count)
        return attention.mla_attend(array_of(query), array_of(latents), index, count, scale)

    # -- routing ------------------------------------------------------------------------------
    def route(
        self, logits: Buffer, bias: Buffer, used: int, scale: float, forced: AnyArray | None = None
    ) -> Routing:
        """Choose and weigh experts."""
        return Routing(*routing.route(array_of(logits), array_of(bias), used, scale, forced))

    def combine(self, rows: Buffer, weights: Buffer, shared: Buffer) -> Buffer:
        """Add expert rows and the shared row."""
        return routing.combine(array_of(rows), array_of(weights), array_of(shared))
