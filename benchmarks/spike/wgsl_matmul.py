"""Assembles the WGSL matrix-matrix kernels from wgsl/matmul.wgsl, everything unrolled."""

from __future__ import annotations

from formats import Format
from wgsl import GUARDED, common, fill

CELLS = [(i, j) for i in range(4) for j in range(4)]  # row, token of a thread
PARTIALS = ("A", GUARDED)


def matmul(fmt: Format, order: str) -> str:
    """Return the matrix-matrix kernel of one format and order."""
    names = ["p", "y", *(["l", "m", "n"] if fmt is Format.Q8_0 else ["s", "g"])]
    kinds = {"s": "0"}
    declare = [
        f"var {n}{i}{j} = {kinds.get(n, '0.0')};".replace("= 0;", ": i32 = 0;")
        for n in names
        for i, j in CELLS
    ]
    if fmt is Format.IQ2_XXS:
        declare += ["table[thread] = grid[thread];"]
    body = [line for h in range(4) for line in _quarter(fmt, order, h)]
    if fmt is not Format.Q8_0:
        body += _close_block(order)
    result = "p"
    if order in PARTIALS:
        result = "y"
        cells = " ".join(f"y{i}{j} += p{i}{j}; p{i}{j} = 0.0;" for i, j in CELLS)
        first = " ".join(f"y{i}{j} = p{i}{j}; p{i}{j} = 0.0;" for i, j in CELLS)
        body.append(f"if (i == 1u) {{ {first} }} else if ((i & 1u) == 1u) {{ {cells} }}")
    store = [
        f"y[(wg.y * 64u + tx + {16 * j}u) * rows + wg.x * 64u + ty + {16 * i}u] = {result}{i}{j};"
        for i, j in CELLS
    ]
    text = fill(
        "matmul", DECLARE="\n".join(declare), BODY="\n".join(body), STORE="\n".join(store),
        STEP="(i & 1u) * 8u + (i >> 1u)" if order in PARTIALS else "i",
    )  # fmt: skip
    table = "var<workgroup> table: array<vec2<u32>, 256>;\n" if fmt is Format.IQ2_XXS else ""
    # The running result's name must not hide the output buffer.
    return common(fmt, order) + table + _rename(text)


def _rename(text: str) -> str:
    for i, j in CELLS:
        text = text.replace(f"y{i}{j}", f"total{i}{j}")
    return text


def _quarter(fmt: Format, order: str, h: int) -> list[str]:
    """Stage 64 values of 64 rows and tokens and multiply them."""
    lines = ["workgroupBarrier();", "{", *_stage(fmt, h)]
    lines.append(
        f"tile_x[line * 5u + quarter] = x[token * 256u + step * 16u + {4 * h}u + quarter];"
    )
    lines += ["}", "workgroupBarrier();", "{"]
    for k in range(4):
        lines += [f"let w{k}{i} = tile_w[(ty + {16 * i}u) * 5u + {k}u];" for i in range(4)]
        lines += [f"let x{k}{j} = tile_x[(tx + {16 * j}u) * 5u + {k}u];" for j in range(4)]
        if fmt is not Format.Q8_0:
            lines += [f"let c{k}{i} = factor[(ty + {16 * i}u) * 5u + {k}u];" for i in range(4)]
            lines += [_group(order, k, i, j) for i, j in CELLS]
        elif k % 2:
            lines += _block_q8(order, 2 * h + k // 2, k)
    return [*lines, "}"]


def _stage(fmt: Format, h: int) -> list[str]:
    if fmt is Format.Q8_0:
        lines = [
            f"tile_w[line * 5u + quarter] = plane0[row * 256u + step * 16u + {4 * h}u + quarter];"
        ]
        lines.append("if (quarter < 2u) {")
        lines.append(
            f"d_w[line * 3u + quarter] = half_at(row * 128u + step * 8u + {2 * h}u + quarter);"
        )
        lines.append("} else {")
        at = f"(step * 8u + {2 * h}u + quarter - 2u) * TOKENS + token"
        return [*lines, f"d_x[line * 3u + quarter - 2u] = x_scale[{at}];", "}"]
    lines = []
    if h == 0:
        eighth = " * 0.125" if fmt is Format.IQ2_XXS else ""
        lines.append(
            f"if (quarter == 0u) {{ d_w[line * 3u] = half_at(row * 16u + step){eighth}; }}"
        )
        lines.append("if (quarter == 1u) { d_x[line * 3u] = x_scale[step * TOKENS + token]; }")
    if fmt is Format.Q6_K:
        half, high = h // 2, h % 2
        lines.append(f"let at = (row * 16u + step) * 8u + {4 * half}u + quarter;")
        lines.append(
            f"let l = plane0[at] >> vec4<u32>({4 * high}u); let q = plane1[at].{'xy'[high]};"
        )
        lines.append("let sc = plane2[at >> 1u] >> (16u * (at & 1u));")
        lines.append(f"factor[line * 5u + quarter] = byte_at(sc, {high}u);")
        words = ", ".join(f"minus32(six_bits(l.{e}, q, {2 * k}u))" for k, e in enumerate("xyzw"))
        return [*lines, f"tile_w[line * 5u + quarter] = vec4<u32>({words});"]
    lines.append(f"let b = plane0[(row * 16u + step) * 8u + {2 * h}u + (quarter >> 1u)];")
    lines.append("let n = (quarter & 1u) * 2u;")
    for name, k in (("e", "n"), ("o", "(n + 1u)")):
        entry = f"table[(b.x >> (8u * {k})) & 255u]"
        lines.append(f"let {name} = signed_grid({entry}, (b.y >> (7u * {k})) & 127u);")
    lines.append("tile_w[line * 5u + quarter] = vec4<u32>(e, o);")
    return [*lines, "factor[line * 5u + quarter] = i32(2u * (b.y >> 28u) + 1u);"]


def _group(order: str, k: int, i: int, j: int) -> str:
    """Add one group of 16 values: exact integers, or floats at once in the free order."""
    dot = f"dot16(w{k}{i}, x{k}{j})"
    if order == "E":
        return f"g{i}{j} = fma(f32(c{k}{i}), f32({dot}), g{i}{j});"
    return f"s{i}{j} += c{k}{i} * {dot};"


def _close_block(order: str) -> list[str]:
    lines = ["{"]
    lines += [f"let dw{i} = d_w[(ty + {16 * i}u) * 3u];" for i in range(4)]
    lines += [f"let dx{j} = d_x[(tx + {16 * j}u) * 3u];" for j in range(4)]
    for i, j in CELLS:
        total = f"g{i}{j}" if order == "E" else f"f32(s{i}{j})"
        lines.append(f"p{i}{j} = fma(dw{i} * dx{j}, {total}, p{i}{j}); s{i}{j} = 0; g{i}{j} = 0.0;")
    return [*lines, "}"]


def _block_q8(order: str, block: int, k: int) -> list[str]:
    """Add one block of 32: a product into the run's tree, or a fused step onto the sum."""
    half = block % 2
    lines = [f"let dw{half}{i} = d_w[(ty + {16 * i}u) * 3u + {half}u];" for i in range(4)]
    lines += [f"let dx{half}{j} = d_x[(tx + {16 * j}u) * 3u + {half}u];" for j in range(4)]
    for i, j in CELLS:
        at = f"{i}{j}"
        dot = f"f32(dot16(w{k - 1}{i}, x{k - 1}{j}) + dot16(w{k}{i}, x{k}{j}))"
        if order not in PARTIALS:
            lines.append(f"p{at} = fma(dw{half}{i} * dx{half}{j}, {dot}, p{at});")
            continue
        value = f"dw{half}{i} * dx{half}{j} * {dot}"
        if order == GUARDED:
            value = f"bitcast<f32>(bitcast<u32>({value}) ^ (count.z >> 1u))"
        if block % 2:
            value = f"l{at} + {value}"
        if block % 4 == 3:
            value = f"m{at} + ({value})"
        if block == 7:
            lines.append(f"p{at} += n{at} + ({value});")
        else:
            lines.append(f"{'n' if block == 3 else 'm' if block % 2 else 'l'}{at} = {value};")
    return lines
