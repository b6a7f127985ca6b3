// Q8_0, rows of 4,096: 32 threads compute four rows, four such groups a workgroup. A lane holds
// half a block of each of eight strips; pairs of lanes exchange exact integers.
var<workgroup> part: array<f32, 528>; // [group][row][33]
var<workgroup> all: array<vec2<f32>, $ALL>; // [group][row][129]
$NARROW

fn fold(keep_low: i32, keep_high: i32, bit: bool) -> i32 {
    return select(keep_low, keep_high, bit) + subgroupShuffleXor(select(keep_high, keep_low, bit), 1u);
}

fn fold_f(keep_low: f32, keep_high: f32, bit: bool, mask: u32) -> f32 {
    return select(keep_low, keep_high, bit) + subgroupShuffleXor(select(keep_high, keep_low, bit), mask);
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) wg: vec3<u32>,
        @builtin(num_workgroups) count: vec3<u32>) {
    let lane = thread & 31u;
    let group = thread >> 5u;
    let odd = lane & 1u;
    let is_odd = odd == 1u;
    let block = lane >> 1u;
    let row0 = ((wg.y * count.x + wg.x) * 4u + group) * 4u;
    $LOAD_X
    for (var r = 0u; r < 4u; r++) {
        let w = (row0 + r) * 256u + lane;
        let d = (row0 + r) * 128u + block;
        $SUMS
        $USE
    }
    workgroupBarrier();
    if (lane < 4u) {
        let base = (group * 4u + lane) * 33u;
        $FINISH
    }
}
