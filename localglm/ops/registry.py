"""The list of all ops, in the order of ``backends.base.Ops``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localglm.ops.cases import (
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
    from localglm.ops.spec import OpSpec

OPS: tuple[OpSpec, ...] = (
    products.EMBED,
    products.MATMUL,
    products.HEAD_MATMUL,
    products.EXPERT_FFN,
    elementwise.SWIGLU,
    norms.RMS_NORM,
    norms.LAYER_NORM,
    elementwise.ADD,
    elementwise.CONCAT,
    hyper.SPREAD,
    hyper.HYPER_PRE,
    hyper.HYPER_POST,
    hyper.STREAM_MEAN,
    kda.SHORT_CONV,
    kda.KDA_DECAY,
    elementwise.SIGMOID,
    kda.KDA_SCAN,
    norms.GATED_NORM,
    attention.STORE_ROWS,
    indexer.POOL_KEYS,
    indexer.INDEXER_SCORES,
    indexer.SELECT_CELLS,
    indexer.DENSE_CELLS,
    attention.MLA_ATTEND,
    routing.ROUTE,
    routing.COMBINE,
)


def op(name: str) -> OpSpec:
    """Return the op with this name."""
    return next(spec for spec in OPS if spec.name == name)
