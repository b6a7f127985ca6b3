"""Make or check the conformance vectors: bits in, bits out, for every storage type and function.

The format is described in tests/conformance/README.md. Run from the repository root:
``python -m build_tools.conformance`` writes, with ``--check`` it compares.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from build_tools import conformance_cases as cases
from localglm.quant import activations, decode, elementary, exact, product
from localglm.quant.types import Family, StorageType
from localglm.quant.unpack import unpack

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "conformance"
SHORT_RUNS = (96, 300)

Array = cases.Array


def bits(values: Array) -> Array:
    """Return float32 values as uint32 bits, every NaN as the same one: payloads are free."""
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return np.where(np.isnan(values), np.uint32(0x7FC00000), words)


def activation_vectors() -> dict[str, Array]:
    """Return the activations, and their 8-bit form for both run lengths and short last runs."""
    rows = cases.activations()
    x = np.stack(list(rows.values()))
    out = {"names": np.array(list(rows)), "x": x.view(np.uint32)}
    for run in activations.RUN_OF_FAMILY.values():
        for columns in (*SHORT_RUNS, cases.WIDEST):
            quantised = activations.quantise(x[:, :columns], run)
            out[f"q_{run}_{columns}"] = quantised.q
            out[f"scale_{run}_{columns}"] = bits(quantised.scale)
    return out


def product_vectors(kind: StorageType, x: Array) -> dict[str, Array]:
    """Return stored rows of one type, their products, and the exact integer sums of short rows."""
    out = {}
    widths = cases.COLUMNS.get(kind.family, cases.FLOAT_COLUMNS)
    for columns in widths:
        data = cases.stored_rows(kind, columns)
        out[f"w_{columns}"] = data
        out[f"y_{columns}"] = bits(product.matmul(kind, data, x[:, :columns]))
        if kind.family is Family.FLOAT:
            continue
        weight = decode.decode_rows(kind, data)
        out[f"float_y_{columns}"] = bits(exact.dot32(weight[None], x[:, None, :columns]))
        if columns == widths[1]:
            out |= integer_vectors(kind, data, x[:, :columns])
    return out


def integer_vectors(kind: StorageType, data: Array, x: Array) -> dict[str, Array]:
    """Return S and M of every block as int32, for finding where a kernel goes wrong."""
    blocks = unpack(kind, data)
    count, groups, values = blocks.weight.shape[1:]
    q = activations.quantise(x, activations.run_length(kind)).q.astype(np.int64)
    q = q.reshape(len(x), count, groups, values)
    factor, weight = blocks.factor.astype(np.int64), blocks.weight.astype(np.int64)
    out = {f"s_{x.shape[1]}": np.einsum("rbg,rbgv,tbgv->trb", factor, weight, q)}
    if blocks.minima is not None:
        offset = blocks.minima.offset.astype(np.int64)
        out[f"m_{x.shape[1]}"] = np.einsum("rbg,tbgv->trb", offset, q)
    return {name: value.astype(np.int32) for name, value in out.items()}


def elementary_vectors() -> dict[str, Array]:
    """Return inputs and outputs of the scalar functions and the plain sum."""
    x = np.concatenate([exp_inputs(), cases.from_bits(*cases.FLOAT_EDGES)])
    a, b, c = fma_inputs()
    halves = half_inputs()
    terms = np.stack(list(cases.activations().values()))[:, :1000]
    out = {
        "x": x.view(np.uint32),
        "exp": bits(elementary.exp(x)),
        "sigmoid": bits(elementary.sigmoid(x)),
        "silu": bits(elementary.silu(x)),
        "fma_a": a.view(np.uint32),
        "fma_b": b.view(np.uint32),
        "fma_c": c.view(np.uint32),
        "fma": bits(exact.fma(a, b, c)),
        "to_half_x": halves.view(np.uint32),
        "to_half": elementary.to_half(halves),
        "from_half_x": elementary.to_half(halves),
        "from_half": bits(elementary.from_half(elementary.to_half(halves))),
        "sum_x": terms.view(np.uint32),
    }
    return out | {f"sum_{n}": bits(exact.sum32(terms[:, :n])) for n in cases.FLOAT_COLUMNS}


def exp_inputs() -> Array:
    """Return arguments over the whole range, dense where the result is subnormal, and the ends."""
    wide = cases.uniform(21, 1500) * 210.0 - 115.0
    small = cases.uniform(22, 300) * 2.0 - 1.0
    subnormal = cases.uniform(23, 300) * -18.0 - 87.0
    ends = np.array([88.72284, -104.0, -87.33655, -103.97208, 1e-8, -1e-8, 1e30, -1e30])
    ends = ends.astype(np.float32)
    around = [np.nextafter(ends, np.float32(side)) for side in (np.inf, -np.inf)]
    ordinary = np.concatenate([wide, small, subnormal]).astype(np.float32)
    return np.concatenate([ordinary, ends, *around])


def fma_inputs() -> tuple[Array, Array, Array]:
    """Return operands of every exponent, sums that nearly cancel, and all pairs of edges."""
    words = cases.raw(24, 1800).reshape(3, 600)
    anything = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
    a, b = cases.bell(25, 600), cases.bell(26, 600)
    with np.errstate(all="ignore"):
        nearly = -(a * b) + np.ldexp(cases.bell(27, 600), -30 - np.arange(600) % 60)
    edges = cases.from_bits(*cases.FLOAT_EDGES)
    left, right = np.meshgrid(edges, edges)
    third = np.resize(edges, left.size + 3)[3:]
    return (
        np.concatenate([anything[0], a, left.ravel()]),
        np.concatenate([anything[1], b, right.ravel()]),
        np.concatenate([anything[2], nearly.astype(np.float32), third]),
    )


def half_inputs() -> Array:
    """Return float16 values, the midpoints above them and the neighbours of those."""
    words = (cases.raw(28, 400) & np.uint64(0x7BFF)).astype(np.uint32)
    edges = np.array([0, 1, 0x3FE, 0x3FF, 0x400, 0x7BFE, 0x7BFF], dtype=np.uint32)
    low = np.concatenate([words, edges]).astype(np.uint16)
    value = low.view(np.float16).astype(np.float64)
    step = np.ldexp(1.0, np.maximum(low >> 10, 1).astype(np.int64) - 25)
    middle = (value + step / 2).astype(np.float32)
    around = [np.nextafter(middle, np.float32(side)) for side in (0, np.inf)]
    positive = np.concatenate([value.astype(np.float32), middle, *around])
    return np.concatenate([positive, -positive, cases.from_bits(*cases.FLOAT_EDGES)])


def collect() -> dict[str, dict[str, Array]]:
    """Return every file's arrays by file name."""
    files = {"activations": activation_vectors(), "elementary": elementary_vectors()}
    x = files["activations"]["x"].view(np.float32)
    return files | {kind.name.lower(): product_vectors(kind, x) for kind in StorageType}


def differences(folder: Path) -> list[str]:
    """Return what differs between the stored vectors and those of this source tree."""
    found = []
    for name, arrays in collect().items():
        path = folder / f"{name}.npz"
        if not path.is_file():
            found.append(f"{path} is missing")
            continue
        with np.load(path) as stored:
            keys = set(stored.files) ^ set(arrays)
            found += [f"{name}: {key} is on one side only" for key in sorted(keys)]
            found += [
                f"{name}: {key} differs"
                for key in sorted(set(stored.files) & set(arrays))
                if stored[key].dtype != arrays[key].dtype
                or not np.array_equal(stored[key], arrays[key])
            ]
    return found


def write(folder: Path) -> int:
    """Write every file and return the bytes they take."""
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for name, arrays in collect().items():
        path = folder / f"{name}.npz"
        named: dict[str, Any] = arrays
        np.savez_compressed(path, **named)
        total += path.stat().st_size
    return total


def main() -> int:
    """Write or check the vectors; the exit code is 1 when a check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    if not arguments.check:
        print(f"{write(arguments.folder)} bytes in {arguments.folder}")
        return 0
    found = differences(arguments.folder)
    print("\n".join(found) or "the vectors are those of this source tree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
