"""Cases and mistakes of the latent cache and latent attention. Long rows cross pieces of 128."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from localglm.ops.cases.random import TOKENS, WIDTHS, generator, normal
from localglm.ops.error import Tolerance
from localglm.ops.reference import attention as ref
from localglm.ops.reference.indexer import padded
from localglm.ops.spec import Case, HostCells, OpSpec, Variant, cut

if TYPE_CHECKING:
    from localglm.arrays import F64
    from localglm.ops.spec import Arguments


def _store_cases() -> list[Case]:
    out = []
    for dtype in (np.float32, np.float16):
        for t, width in [(t, 33) for t in TOKENS] + [(2, width) for width in WIDTHS]:
            label = f"{t}x{width} {np.dtype(dtype).name}"
            source = generator(f"store_rows {label}")
            cache = normal(source, 24, width).astype(dtype)
            out.append(Case(label, {"cache": cache, "rows": normal(source, t, width), "start": 5}))
    edges = np.array([[65519.0, 65520.0, -1e6, 1e-8, 6e-8, np.nan, np.inf]], dtype=np.float32)
    empty = np.zeros((2, edges.shape[1]), dtype=np.float16)
    out.append(Case("edge values float16", {"cache": empty, "rows": edges, "start": 1}))
    return out


def _attend_cases() -> list[Case]:
    out = [_attend(t, 2, 32, 20, np.float32) for t in TOKENS]
    out += [_attend(2, 3, width, 40, np.float32) for width in WIDTHS]
    out += [_attend(2, 2, 32, cells, np.float32) for cells in (1, 127, 128, 129, 257)]
    out += [_attend(3, 2, 160, 130, np.float16), _attend(2, 9, 64, 12, np.float32)]
    out.append(_attend(2, 2, 32, 140, np.float32, size=12.0))
    return out


def _attend(
    t: int, heads: int, width: int, cells: int, dtype: type[np.floating], size: float = 1.0
) -> Case:
    label = f"{t}x{heads}x{width} {cells} cells {np.dtype(dtype).name} size {size}"
    source = generator(f"mla_attend {label}")
    capacity = cells + t + 3
    rows = []
    for m in range(t):
        seen = np.arange(cells + m)
        kept = seen if m == 0 else np.sort(source.choice(seen, cells, replace=False))
        rows.append(kept)
    index, count = padded(rows)
    arguments = {
        "query": normal(source, t, heads, width, scale=size),
        "latents": normal(source, capacity, width).astype(dtype),
        "cells": HostCells(index, count),
        "scale": 1 / np.sqrt(2 * width).item(),
    }
    return Case(label, arguments)


def _define_attend(query: F64, latents: F64, cells: HostCells, scale: float) -> F64:
    return ref.mla_attend(query, latents, cells.index, cells.count, scale)


def _split_attend(arguments: Arguments, first: int) -> tuple[Arguments, Arguments]:
    cells = arguments["cells"]
    assert isinstance(cells, HostCells)
    head, rest = dict(arguments), dict(arguments)
    head["query"], rest["query"] = cut(arguments["query"], first)
    head["cells"] = HostCells(cells.index[:first], cells.count[:first])
    rest["cells"] = HostCells(cells.index[first:], cells.count[first:])
    return head, rest


def _latent_width_scale(query: F64, latents: F64, cells: HostCells, scale: float) -> F64:
    del scale
    return _define_attend(query, latents, cells, 1 / np.sqrt(query.shape[-1]).item())


def _count_ignored(query: F64, latents: F64, cells: HostCells, scale: float) -> F64:
    full = np.full_like(cells.count, cells.index.shape[1] + 1)
    index = np.concatenate([cells.index, np.zeros_like(cells.index[:, :1])], axis=1)
    return ref.mla_attend(query, latents, index, full, scale)


def _last_cell_missed(query: F64, latents: F64, cells: HostCells, scale: float) -> F64:
    return ref.mla_attend(query, latents, cells.index, np.maximum(cells.count - 1, 1), scale)


def _no_softmax(query: F64, latents: F64, cells: HostCells, scale: float) -> F64:
    out = np.empty_like(query)
    for m, count in enumerate(cells.count):
        rows = latents[cells.index[m, :count]].astype(np.float64)
        out[m] = scale * (query[m] @ rows.T) @ rows / count
    return out


def _one_row_late(cache: F64, rows: F64, start: int) -> None:
    ref.store_rows(cache, rows, start + 1 if start + len(rows) < len(cache) else start - 1)


def _cut_not_rounded(cache: F64, rows: F64, start: int) -> None:
    """Round towards zero, as dropping the low bits does."""
    with np.errstate(over="ignore"):
        near = rows.astype(cache.dtype)
        past = np.abs(near) > np.abs(rows)
        near[past] = np.nextafter(near[past], np.zeros_like(near[past]))
    ref.store_rows(cache, near, start)


STORE_ROWS = OpSpec(
    name="store_rows",
    formula="cache[start + m] = rows[m], rounded to the cache's type",
    definition=ref.store_rows,
    cases=_store_cases,
    outputs=(),
    state=("cache",),
    tokens=("rows",),
    position="start",
    variants=(
        Variant("one row late", _one_row_late),
        Variant("cut instead of rounded to nearest", _cut_not_rounded),
    ),
)

MLA_ATTEND = OpSpec(
    name="mla_attend",
    formula="sum_c softmax_c(scale q_h . latent_c) latent_c",
    definition=_define_attend,
    cases=_attend_cases,
    splitter=_split_attend,
    float32=Tolerance(1e-11, 1e-5),
    variants=(
        Variant("scale from the latent width", _latent_width_scale),
        Variant("cells past the count attended", _count_ignored),
        Variant("last cell missed", _last_cell_missed),
        Variant("linear instead of softmax", _no_softmax),
    ),
)
