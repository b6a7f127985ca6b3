"""Assembles the WGSL kernels: fragments from wgsl/, with registers named and unrolled here.

An array indexed by a loop variable lives in memory on most drivers, so nothing here uses one.
"""

from __future__ import annotations

from pathlib import Path
from string import Template

from formats import Format

FRAGMENTS = Path(__file__).parent / "wgsl"
# A lone product, fma(f, s, 0) included, is fused into the sum that follows unless a value that only
# the run knows stands between: here count.z >> 1, which is 0 in every dispatch.
GUARDED = "G"


def fill(name: str, **parts: str) -> str:
    """Return a fragment of wgsl/ with its $NAMES replaced."""
    return Template((FRAGMENTS / f"{name}.wgsl").read_text()).substitute(parts)


def common(fmt: Format, order: str) -> str:
    """Return bindings and shared functions; only the free order lets the device widen halves."""
    plane = "vec2<u32>" if fmt is Format.IQ2_XXS else "vec4<u32>"
    half = "half_exact(select(word & 0xffffu, word >> 16u, (i & 1u) == 1u))"
    if order == "E":
        half = "select(unpack2x16float(word).x, unpack2x16float(word).y, (i & 1u) == 1u)"
    return fill("common", PLANE0=plane, HALF=half)


def _tree(names: list[str]) -> str:
    while len(names) > 1:
        half = len(names) // 2
        names = [f"({names[j]} + {names[j + half]})" for j in range(half)]
    return names[0]


def _in_order(names: list[str]) -> str:
    text = names[0]
    for name in names[1:]:
        text = f"({text} + {name})"
    return text


def _add_lanes(value: str, subgroup: int) -> tuple[str, str]:
    """Return the free sum over 32 lanes: what each row stores, and how a row's lane reads it."""
    if subgroup >= 32:
        return f"let v = subgroupAdd({value}); if (lane == 0u) {{ y[row0 + r] = v; }}", ""
    store = f"let v = subgroupAdd({value}); sums[((group * 4u + r) << 2u) + (lane >> 3u)] = v;"
    at = "((group * 4u + lane) << 2u)"
    return store, "y[row0 + lane] = " + " + ".join(f"sums[{at} + {k}u]" for k in range(4)) + ";"


def matvec(fmt: Format, order: str, subgroup: int) -> str:
    """Return the matrix-vector kernel of one format and order."""
    body = _q8(order, subgroup) if fmt is Format.Q8_0 else _super(fmt, order, subgroup)
    return common(fmt, order) + body


def _q8(order: str, subgroup: int) -> str:
    load = [f"let x{i} = x[{32 * i}u + lane];" for i in range(8)]
    sums = [f"let s{i} = dot16(plane0[w + {32 * i}u], x{i});" for i in range(8)]
    # The strip a lane keeps after the exchange, for the low and the high half of the pair.
    pairs = [(2 * k, 2 * k + 1) if order == "D" else (k, k + 4) for k in range(4)]
    strip = [f"{2 * k}u + odd" if order == "D" else f"4u * odd + {k}u" for k in range(4)]
    if order == "E":
        load += [f"let dx{i} = x_scale[{16 * i}u + block];" for i in range(8)]
        use = ["var acc = 0.0;"]
        use += [f"acc = fma(half_at(d + {16 * i}u) * dx{i}, f32(s{i}), acc);" for i in range(8)]
        store, finish = _add_lanes("acc", subgroup)
        return _join(
            "matvec_q8", load, sums, [*use, store], finish, ALL="1", NARROW=_narrow(subgroup)
        )
    load += [f"let dx{k} = x_scale[16u * ({strip[k]}) + block];" for k in range(4)]
    use = []
    for k, (low, high) in enumerate(pairs):
        use.append(f"let q{k} = f32(fold(s{low}, s{high}, is_odd));")
        use.append(f"let f{k} = half_at(d + 16u * ({strip[k]})) * dx{k};")
    finish = _q8_use(order, strip, use)
    size = "2064" if order == "C" else "1"
    return _join("matvec_q8", load, sums, use, finish, ALL=size, NARROW="")


def _q8_use(order: str, strip: list[str], use: list[str]) -> str:
    """Append what a row does with its factors and sums; return the last steps."""
    if order == "C":
        for k in range(4):
            at = f"(group * 4u + r) * 129u + 16u * ({strip[k]}) + block"
            use.append(f"all[{at}] = vec2<f32>(f{k}, q{k});")
        return """var total = 0.0;
        for (var b = 0u; b < 128u; b++) {
            let v = all[(group * 4u + lane) * 129u + b];
            total = fma(v.x, v.y, total);
        }
        y[row0 + lane] = total;"""
    if order == "D":
        chain = "0.0"
        for k in range(4):
            chain = f"fma(f{k}, q{k}, {chain})"
        use.append(f"part[(group * 4u + r) * 33u + 16u * odd + block] = {chain};")
        return "y[row0 + lane] = " + _tree([f"part[base + {j}u]" for j in range(32)]) + ";"
    for k in range(4):
        product = f"f{k} * q{k}"
        if order == GUARDED:
            product = f"bitcast<f32>(bitcast<u32>({product}) ^ (count.z >> 1u))"
        use.append(f"let p{k} = {product};")
    use.append("let b1 = (lane & 2u) != 0u; let b2 = (lane & 4u) != 0u;")
    use.append("let u0 = fold_f(p0, p2, b1, 2u); let u1 = fold_f(p1, p3, b1, 2u);")
    use.append("let t = fold_f(u0, u1, b2, 4u);")
    use.append("let run = 2u * (4u * odd + (lane & 2u) + ((lane >> 2u) & 1u)) + (lane >> 4u);")
    use.append("part[(group * 4u + r) * 33u + 2u * run + ((lane >> 3u) & 1u)] = t;")
    finish = [f"let t{r} = part[base + {2 * r}u] + part[base + {2 * r + 1}u];" for r in range(16)]
    parts = [f"((0.0 + t{j}) + t{j + 8})" for j in range(8)]
    total = _tree(parts) if order == "B" else _in_order(parts)
    return "\n".join([*finish, f"y[row0 + lane] = {total};"])


def _narrow(subgroup: int) -> str:
    return "" if subgroup >= 32 else "var<workgroup> sums: array<f32, 64>;"


def _join(
    name: str, load: list[str], sums: list[str], use: list[str], finish: str, **more: str
) -> str:
    return fill(
        name,
        LOAD_X="\n".join(load),
        SUMS="\n".join(sums),
        USE="\n".join(use),
        FINISH=finish,
        **more,
    )


Q6_PIECE = """
fn piece(at: u32, lo: vec4<u32>, hi: vec4<u32>, sum_lo: i32, sum_hi: i32) -> i32 {
    let l = plane0[at];
    let h = plane1[at];
    let sc = plane2[at >> 1u] >> (16u * (at & 1u));
    var low = dot4I8Packed(six_bits(l.x, h.x, 0u), lo.x);
    low += dot4I8Packed(six_bits(l.y, h.x, 2u), lo.y);
    low += dot4I8Packed(six_bits(l.z, h.x, 4u), lo.z);
    low += dot4I8Packed(six_bits(l.w, h.x, 6u), lo.w);
    var high = dot4I8Packed(six_bits(l.x >> 4u, h.y, 0u), hi.x);
    high += dot4I8Packed(six_bits(l.y >> 4u, h.y, 2u), hi.y);
    high += dot4I8Packed(six_bits(l.z >> 4u, h.y, 4u), hi.z);
    high += dot4I8Packed(six_bits(l.w >> 4u, h.y, 6u), hi.w);
    return byte_at(sc, 0u) * (low - 32 * sum_lo) + byte_at(sc, 1u) * (high - 32 * sum_hi);
}"""

IQ2_PIECE = """
fn piece(at: u32, lo: vec4<u32>, hi: vec4<u32>, sum_lo: i32, sum_hi: i32) -> i32 {
    let w = plane0[at];
    let a = signed_grid(table[w.x & 255u], w.y & 127u);
    let b = signed_grid(table[(w.x >> 8u) & 255u], (w.y >> 7u) & 127u);
    let c = signed_grid(table[(w.x >> 16u) & 255u], (w.y >> 14u) & 127u);
    let d = signed_grid(table[w.x >> 24u], (w.y >> 21u) & 127u);
    let dot = dot16(vec4<u32>(a, b), lo) + dot16(vec4<u32>(c, d), hi);
    return i32(2u * (w.y >> 28u) + 1u) * dot;
}"""


def _super(fmt: Format, order: str, subgroup: int) -> str:
    q6 = fmt is Format.Q6_K
    load: list[str] = []
    for i in range(4):
        base = f"{64 * i}u + 16u * (lane >> 3u)"
        if q6:
            load.append(f"let a{i} = {base} + 8u * (c >> 2u) + (c & 3u);")
            load.append(f"let lo{i} = x[a{i}]; let hi{i} = x[a{i} + 4u];")
            load.append(f"let sl{i} = x_sums[a{i}]; let sh{i} = x_sums[a{i} + 4u];")
        else:
            load.append(f"let lo{i} = x[{base} + 2u * c]; let hi{i} = x[{base} + 2u * c + 1u];")
    sums = []
    for k in range(8):
        i = k % 4
        at = f"(row0 + r + {k // 4}u) * 128u + {32 * i}u + lane"
        more = f"sl{i}, sh{i}" if q6 else "0, 0"
        sums.append(f"let s{k} = piece({at}, lo{i}, hi{i}, {more});")
    eighth = "" if q6 else " * 0.125"
    if order == "E":
        load += [f"let dx{i} = x_scale[{4 * i}u + (lane >> 3u)];" for i in range(4)]
        use, finish = _super_free(eighth, subgroup)
    else:
        use = [
            "let b0 = (lane & 1u) != 0u; let b1 = (lane & 2u) != 0u; let b2 = (lane & 4u) != 0u;"
        ]
        use += [f"let v{k} = fold(s{k}, s{k + 4}, b0, 1u);" for k in range(4)]
        use += [f"let w{k} = fold(v{k}, v{k + 2}, b1, 2u);" for k in range(2)]
        use.append("let s = fold(w0, w1, b2, 4u); let own = r + (lane & 1u);")
        use.append(f"let f = half_at((row0 + own) * 16u + mine){eighth} * dx;")
        use.append("all[(group * 4u + own) * 17u + mine] = vec2<f32>(f, f32(s));")
        finish = _super_finish(order)
    table = "" if q6 else "var<workgroup> table: array<vec2<u32>, 256>;"
    fetch = "table[thread] = grid[thread]; table[thread + 128u] = grid[thread + 128u];"
    narrow = _narrow(subgroup) if order == "E" else ""
    return _join(
        "matvec_super", load, sums, use, finish,
        TABLE=table, LOAD_TABLE="" if q6 else fetch + " workgroupBarrier();", NARROW=narrow,
        PIECE=Q6_PIECE if q6 else IQ2_PIECE,
    )  # fmt: skip


def _super_free(eighth: str, subgroup: int) -> tuple[list[str], str]:
    use, finish = [], ""
    for row in range(2):
        use.append(f"var acc{row} = 0.0;")
        for i in range(4):
            d = f"half_at((row0 + r + {row}u) * 16u + {4 * i}u + (lane >> 3u)){eighth}"
            use.append(f"acc{row} = fma({d} * dx{i}, f32(s{4 * row + i}), acc{row});")
        store, finish = _add_lanes(f"acc{row}", subgroup)
        store = store.replace("let v ", f"let v{row} ").replace("= v;", f"= v{row};")
        use.append(store.replace("+ r]", f"+ r + {row}u]").replace("4u + r)", f"4u + r + {row}u)"))
    return use, finish


def _super_finish(order: str) -> str:
    count = {"C": 1, "D": 16}.get(order, 8)
    lines = [f"var p{j} = bitcast<f32>(count.z >> 1u);" for j in range(count)]
    for b in range(16):
        lines.append(f"let v{b} = all[base + {b}u];")
        lines.append(f"p{b % count} = fma(v{b}.x, v{b}.y, p{b % count});")
    names = [f"p{j}" for j in range(count)]
    total = _in_order(names) if order in "AC" else _tree(names)
    return "\n".join([*lines, f"y[row0 + lane] = {total};"])
