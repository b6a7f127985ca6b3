// 64 weight rows x 64 tokens a workgroup, 256 threads with 4 x 4 results each; K advances by 64
// values. Order A walks the blocks j, j + 8 for j = 0..7.
var<workgroup> tile_w: array<vec4<u32>, 320>; // [row][5]
var<workgroup> tile_x: array<vec4<u32>, 320>;
var<workgroup> factor: array<i32, 320>; // [row][5]
var<workgroup> d_w: array<f32, 192>; // [row][3]
var<workgroup> d_x: array<f32, 192>;

const TOKENS = 512u;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) wg: vec3<u32>,
        @builtin(num_workgroups) count: vec3<u32>) {
    let rows = count.x * 64u;
    let tx = thread & 15u;
    let ty = thread >> 4u;
    let line = thread >> 2u;
    let quarter = thread & 3u;
    let row = wg.x * 64u + line;
    let token = wg.y * 64u + line;
    $DECLARE
    for (var i = 0u; i < 16u; i++) {
        let step = $STEP;
        $BODY
    }
    $STORE
}
