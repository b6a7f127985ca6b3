// Q6_K and IQ2_XXS, rows of 4,096: 32 threads compute four rows, four such groups a workgroup.
// Eight lanes share a block; only shuffles inside eight lanes are used.
var<workgroup> all: array<vec2<f32>, 272>; // [group][row][17]
$NARROW
$TABLE

fn fold(keep_low: i32, keep_high: i32, bit: bool, mask: u32) -> i32 {
    return select(keep_low, keep_high, bit) + subgroupShuffleXor(select(keep_high, keep_low, bit), mask);
}

$PIECE

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) wg: vec3<u32>,
        @builtin(num_workgroups) count: vec3<u32>) {
    let lane = thread & 31u;
    let group = thread >> 5u;
    let c = lane & 7u;
    let row0 = ((wg.y * count.x + wg.x) * 4u + group) * 4u;
    $LOAD_TABLE
    $LOAD_X
    let mine = 8u * ((lane >> 1u) & 1u) + 4u * ((lane >> 2u) & 1u) + (lane >> 3u);
    let dx = x_scale[mine];
    for (var r = 0u; r < 4u; r += 2u) {
        $SUMS
        $USE
    }
    workgroupBarrier();
    if (lane < 4u) {
        let base = (group * 4u + lane) * 17u;
        $FINISH
    }
}
