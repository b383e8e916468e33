// Kernels of mixtures of experts besides the products: which experts a row has, how much each counts, and the weighted
// sum of their results. Rows are short, so one thread does a row of the first two.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> experts: array<u32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(5) var<storage, read_write> dst: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

struct Params {
  srcCols: u32,
  srcStride: u32,
  expertsCols: u32,
  expertsStride: u32,
  weightsCols: u32,
  weightsStride: u32,
  dstCols: u32,
  dstStride: u32,
  rowsAt: u32,
  count: u32,
  normalize: u32,
  scale: f32,
}

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Whether column i comes before column j: larger, or equal and lower; a NaN is never larger.
fn before(x: f32, i: u32, y: f32, j: u32) -> bool {
  if (is_nan(x) || is_nan(y)) {
    return i < j;
  }
  return x > y || (x == y && i < j);
}

// A thread a column: its rank is how many columns come before it.
// entry top_k(params, src, chosen) dispatch(srcCols / 64, rows)
@compute @workgroup_size(64)
fn top_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = group.x * 64u + thread;
  if (column >= params.srcCols) {
    return;
  }
  let begin = group.y * params.srcStride;
  var rank = 0u;
  for (var i = 0u; i < params.srcCols; i++) {
    if (i != column && before(src[begin + i], i, src[begin + column], column)) {
      rank++;
    }
  }
  if (rank < params.count) {
    chosen[group.y * params.dstStride + rank] = column;
  }
}

// entry routing_weights(params, batch, src, experts, dst) dispatch(rows / 64)
@compute @workgroup_size(64)
fn routing_weights(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.x;
  if (row >= batch[params.rowsAt]) {
    return;
  }
  var sum = 0.0;
  for (var i = 0u; i < params.expertsCols; i++) {
    sum += src[row * params.srcStride + min(experts[row * params.expertsStride + i], params.srcCols - 1u)];
  }
  let divisor = select(1.0, sum, params.normalize != 0u);
  for (var i = 0u; i < params.expertsCols; i++) {
    let value = src[row * params.srcStride + min(experts[row * params.expertsStride + i], params.srcCols - 1u)];
    dst[row * params.dstStride + i] = value / divisor * params.scale;
  }
}

// entry combine_experts(params, src, weights, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn combine_experts(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = group.x * 256u + thread;
  if (column >= params.dstCols) {
    return;
  }
  var sum = 0.0;
  for (var i = 0u; i < params.weightsCols; i++) {
    sum += weights[group.y * params.weightsStride + i] * src[group.y * params.srcStride + i * params.dstCols + column];
  }
  dst[group.y * params.dstStride + column] = sum;
}
