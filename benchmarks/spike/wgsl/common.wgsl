// Operands of every kernel. Planes and activations as in the CUDA kernels.
@group(0) @binding(0) var<storage, read> plane0: array<$PLANE0>;
@group(0) @binding(1) var<storage, read> plane1: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> plane2: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> x_scale: array<f32>;
@group(0) @binding(6) var<storage, read> x_sums: array<i32>;
@group(0) @binding(7) var<storage, read> grid: array<vec2<u32>>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;

// Half to float by integer operations: unpack2x16float may flush subnormals.
fn half_exact(bits: u32) -> f32 {
    let sign = (bits & 0x8000u) << 16u;
    let magnitude = bits & 0x7fffu;
    let tiny = bitcast<u32>(f32(magnitude) * 5.9604644775390625e-8);
    let wide = (magnitude << 13u) + select(0x38000000u, 0x70000000u, magnitude >= 0x7c00u);
    return bitcast<f32>(sign | select(wide, tiny, magnitude < 0x400u));
}

fn half_at(i: u32) -> f32 {
    let word = scales[i >> 1u];
    return $HALF;
}

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z)
        + dot4I8Packed(a.w, b.w);
}

fn six_bits(nibbles: u32, pairs: u32, shift: u32) -> u32 {
    return (nibbles & 0x0f0f0f0fu) | (((pairs >> shift) & 0x03030303u) << 4u);
}

fn minus32(q: u32) -> u32 {
    return ((q | 0x80808080u) - 0x20202020u) ^ 0x80808080u;
}

fn signed_grid(entry: vec2<u32>, seven: u32) -> vec2<u32> {
    let s = seven | ((countOneBits(seven) & 1u) << 7u);
    let one = (vec2<u32>(s & 15u, s >> 4u) * 0x00204081u) & vec2<u32>(0x01010101u);
    return (entry ^ (one * 255u)) + one;
}

fn byte_at(word: u32, i: u32) -> i32 {
    return extractBits(bitcast<i32>(word), i * 8u, 8u);
}
