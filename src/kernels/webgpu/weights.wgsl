// Kernels that read matrices of weights: rows of a table, and products of rows with a matrix. One function, load8,
// knows how each encoding lies on the device (backends/webgpu/packed_weight.h); all arithmetic is f32. No feature is
// needed.
//
// A product is a sum of f32 products whose order is fixed by the shape of the weight alone, so a row's result does not
// depend on the rows beside it. gemv and tiled sum in different orders.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> dst: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

override weightEncoding: u32;

struct Params {
  weightRows: u32,
  weightCols: u32,
  weightStride: u32,  // of experts, in units of 16 bytes
  weightCount: u32,
  srcStride: u32,
  dstStride: u32,
  expertsStride: u32,
  perToken: u32,
  inputGroups: u32,
  rowsAt: u32,  // where `batch` has the number of rows
  scale: f32,
}

const F32 = 0u;
const F16 = 1u;
const BF16 = 2u;
const Q8_0 = 3u;
const Q4_0 = 4u;
const Q4_K = 5u;
const Q5_K = 6u;
const Q6_K = 7u;

struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
}

// Two neighbouring words of weights; `word` is even.
fn words(base: u32, word: u32) -> vec2<u32> {
  let quad = weight[base + word / 4u];
  return select(quad.xy, quad.zw, word % 4u == 2u);
}

// The i-th of packed f16 numbers.
fn half_at(base: u32, i: u32) -> f32 {
  return unpack2x16float(weight[base + i / 8u][i / 2u % 4u])[i % 2u];
}

fn unsigned_bytes(word: u32) -> vec4<f32> {
  return vec4<f32>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));
}

fn signed_bytes(word: u32) -> vec4<f32> {
  return vec4<f32>((vec4<i32>(bitcast<i32>(word)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}

fn byte_of(bytes: vec3<u32>, i: u32) -> u32 {
  return (bytes[i / 4u] >> (8u * (i % 4u))) & 0xffu;
}

// The 6-bit scale and minimum of sub-block j, as Q4_K and Q5_K pack them.
fn scale_and_minimum(bytes: vec3<u32>, j: u32) -> vec2<f32> {
  if (j < 4u) {
    return vec2<f32>(f32(byte_of(bytes, j) & 63u), f32(byte_of(bytes, j + 4u) & 63u));
  }
  let s = (byte_of(bytes, j + 4u) & 15u) | ((byte_of(bytes, j - 4u) >> 6u) << 4u);
  let m = (byte_of(bytes, j + 4u) >> 4u) | ((byte_of(bytes, j) >> 6u) << 4u);
  return vec2<f32>(f32(s), f32(m));
}

// Elements 8 * unit … 8 * unit + 7 of a row of the matrix that begins at `base`, in units of 16 bytes.
fn load8(base: u32, row: u32, unit: u32) -> Eight {
  switch weightEncoding {
    case F32: {
      let at = base + (row * ((params.weightCols + 7u) / 8u) + unit) * 2u;
      return Eight(bitcast<vec4<f32>>(weight[at]), bitcast<vec4<f32>>(weight[at + 1u]));
    }
    case F16: {
      let w = weight[base + row * ((params.weightCols + 7u) / 8u) + unit];
      return Eight(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)),
                   vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
    }
    case BF16: {
      let w = weight[base + row * ((params.weightCols + 7u) / 8u) + unit];
      let even = bitcast<vec4<f32>>(w << vec4<u32>(16u));
      let odd = bitcast<vec4<f32>>(w & vec4<u32>(0xffff0000u));
      return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
    }
    case Q8_0: {
      let block = row * (params.weightCols / 32u) + unit / 4u;
      let d = half_at(base + params.weightRows * (params.weightCols / 16u), block);
      let q = words(base, block * 8u + unit % 4u * 2u);
      return Eight(d * signed_bytes(q.x), d * signed_bytes(q.y));
    }
    case Q4_0: {
      let block = row * (params.weightCols / 32u) + unit / 4u;
      let d = half_at(base + params.weightRows * (params.weightCols / 32u), block);
      let q = (words(base, block * 4u + unit % 2u * 2u) >> vec2<u32>(unit % 4u / 2u * 4u)) & vec2<u32>(0x0f0f0f0fu);
      return Eight(d * (unsigned_bytes(q.x) - 8.0), d * (unsigned_bytes(q.y) - 8.0));
    }
    case Q4_K: {
      let block = base + (row * (params.weightCols / 256u) + unit / 32u) * 9u;
      let k = unit % 32u * 8u;
      let head = weight[block];
      let factors = unpack2x16float(head.x) * scale_and_minimum(head.yzw, k / 32u);
      let q = (words(block + 1u, k / 64u * 8u + k % 32u / 4u) >> vec2<u32>(k / 32u % 2u * 4u)) &
              vec2<u32>(0x0f0f0f0fu);
      return Eight(factors.x * unsigned_bytes(q.x) - factors.y, factors.x * unsigned_bytes(q.y) - factors.y);
    }
    case Q5_K: {
      let block = base + (row * (params.weightCols / 256u) + unit / 32u) * 11u;
      let k = unit % 32u * 8u;
      let head = weight[block];
      let factors = unpack2x16float(head.x) * scale_and_minimum(head.yzw, k / 32u);
      let low = (words(block + 3u, k / 64u * 8u + k % 32u / 4u) >> vec2<u32>(k / 32u % 2u * 4u)) &
                vec2<u32>(0x0f0f0f0fu);
      let high = (words(block + 1u, k % 32u / 4u) >> vec2<u32>(k / 32u)) & vec2<u32>(0x01010101u);
      let q = low | (high << vec2<u32>(4u));
      return Eight(factors.x * unsigned_bytes(q.x) - factors.y, factors.x * unsigned_bytes(q.y) - factors.y);
    }
    default: {  // Q6_K
      let blocks = params.weightRows * (params.weightCols / 256u);
      let block = row * (params.weightCols / 256u) + unit / 32u;
      let k = unit % 32u * 8u;
      let in_half = k % 128u;
      let low = (words(base, block * 32u + k / 128u * 16u + in_half % 64u / 4u) >> vec2<u32>(in_half / 64u * 4u)) &
                vec2<u32>(0x0f0f0f0fu);
      let high = (words(base + blocks * 8u, block * 16u + k / 128u * 8u + in_half % 32u / 4u) >>
                  vec2<u32>(in_half / 32u * 2u)) & vec2<u32>(0x03030303u);
      let q = low | (high << vec2<u32>(4u));
      let scales = weight[base + blocks * 12u + block];
      let s = f32((bitcast<i32>(scales[k / 64u]) << (24u - k / 16u % 4u * 8u)) >> 24u);
      let d = half_at(base + blocks * 13u, block) * s;
      return Eight(d * (unsigned_bytes(q.x) - 32.0), d * (unsigned_bytes(q.y) - 32.0));
    }
  }
}

fn row_units() -> u32 {
  return (params.weightCols + 7u) / 8u;
}

// Elements 4 * quad … of a row of src that begins at `first`, a multiple of 4, and has weightCols elements; 0 behind its
// end, where anything may lie.
fn source_quad(first: u32, quad: u32) -> vec4<f32> {
  let values = src[first / 4u + quad];
  if (params.weightCols % 8u == 0u) {
    return values;
  }
  let k = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
  return select(vec4<f32>(0.0), values, k < vec4<u32>(params.weightCols));
}

// Rows are padded to 16 elements, so that a quad may reach behind a row's end.
fn write_quad(at: u32, values: vec4<f32>) {
  dst[at] = values.x;
  dst[at + 1u] = values.y;
  dst[at + 2u] = values.z;
  dst[at + 3u] = values.w;
}

fn not_a_number(any: u32) -> f32 {
  return bitcast<f32>(0x7fc00000u | (any & 1u));  // constants may not be NaN
}

// entry gather(params, tokens, weight, dst) dispatch(weightCols / 512, rows)
@compute @workgroup_size(64)
fn gather(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let unit = group.x * 64u + thread;
  if (unit >= row_units()) {
    return;
  }
  let index = tokens[group.y];
  var values = Eight(vec4<f32>(not_a_number(index)), vec4<f32>(not_a_number(index)));
  if (index < params.weightRows) {
    values = load8(0u, index, unit);
  }
  let first = group.y * params.dstStride + unit * 8u;
  write_quad(first, values.low * params.scale);
  write_quad(first + 4u, values.high * params.scale);
}

const kGemvThreads = 128u;
var<workgroup> sums: array<vec4<f32>, 128>;

// The products of one row of src with rows n … n + 3 of the matrix at `base`, in thread 0.
fn four_products(first: u32, base: u32, n: u32, thread: u32) -> vec4<f32> {
  let last = params.weightRows - 1u;
  let n1 = min(n + 1u, last);
  let n2 = min(n + 2u, last);
  let n3 = min(n + 3u, last);
  var sum = vec4<f32>(0.0);
  for (var unit = thread; unit < row_units(); unit += kGemvThreads) {
    let low = source_quad(first, unit * 2u);
    let high = source_quad(first, unit * 2u + 1u);
    let w0 = load8(base, n, unit);
    let w1 = load8(base, n1, unit);
    let w2 = load8(base, n2, unit);
    let w3 = load8(base, n3, unit);
    sum += vec4<f32>(dot(low, w0.low), dot(low, w1.low), dot(low, w2.low), dot(low, w3.low));
    sum += vec4<f32>(dot(high, w0.high), dot(high, w1.high), dot(high, w2.high), dot(high, w3.high));
  }
  sums[thread] = sum;
  workgroupBarrier();
  for (var half = kGemvThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      sums[thread] += sums[thread + half];
    }
    workgroupBarrier();
  }
  return sums[0];
}

fn write_four(first: u32, n: u32, thread: u32, values: vec4<f32>) {
  if (thread < 4u && n + thread < params.weightRows) {
    dst[first + n + thread] = values[thread];
  }
}

// entry gemv(params, src, weight, dst) dispatch(fold(weightRows / 4), rows)
@compute @workgroup_size(128)
fn gemv(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) thread: u32) {
  let n = (group.x + group.y * groups.x) * 4u;
  if (n >= params.weightRows) {
    return;
  }
  write_four(group.z * params.dstStride, n, thread, four_products(group.z * params.srcStride, 0u, n, thread));
}

// entry expert_gemv(params, src, experts, weight, dst) dispatch(fold(weightRows / 4), rows * perToken)
@compute @workgroup_size(128)
fn expert_gemv(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
               @builtin(local_invocation_index) thread: u32) {
  let n = (group.x + group.y * groups.x) * 4u;
  if (n >= params.weightRows) {
    return;
  }
  let row = group.z / params.perToken;
  let choice = group.z % params.perToken;
  let expert = experts[row * params.expertsStride + choice];
  let first = row * params.srcStride + select(choice * params.weightCols, 0u, params.inputGroups == 1u);
  var values = four_products(first, min(expert, params.weightCount - 1u) * params.weightStride, n, thread);
  if (expert >= params.weightCount) {
    values = vec4<f32>(not_a_number(expert));
  }
  write_four(row * params.dstStride + choice * params.weightRows, n, thread, values);
}

var<workgroup> parts: array<Eight, 64>;

// The weight is stored as inputs by outputs: eight threads share eight outputs, each with every eighth input.
// entry transposed(params, src, weight, dst) dispatch(weightCols / 64, rows)
@compute @workgroup_size(64)
fn transposed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let unit = group.x * 8u + thread % 8u;
  var sum = Eight(vec4<f32>(0.0), vec4<f32>(0.0));
  if (unit < row_units()) {
    for (var k = thread / 8u; k < params.weightRows; k += 8u) {
      let at = group.y * params.srcStride + k;
      let x = src[at / 4u][at % 4u];
      let w = load8(0u, k, unit);
      sum.low += x * w.low;
      sum.high += x * w.high;
    }
  }
  parts[thread] = sum;
  workgroupBarrier();
  for (var half = 32u; half >= 8u; half /= 2u) {
    if (thread < half) {
      parts[thread].low += parts[thread + half].low;
      parts[thread].high += parts[thread + half].high;
    }
    workgroupBarrier();
  }
  let n = group.x * 64u + thread;
  if (n < params.weightCols) {
    let eight = parts[thread / 8u];
    let i = thread % 8u;
    dst[group.y * params.dstStride + n] = select(eight.high[i % 4u], eight.low[i % 4u], i < 4u);
  }
}

// A tile of 64 rows by 64 outputs, 32 inputs at a time; each of 64 threads owns 8 by 8 results: rows 4 * ty … + 3 and
// 32 more behind, outputs 4 * tx … + 3 and 32 more behind. Tiles hold four rows (outputs) of one input side by side.
const kDepth = 32u;
var<workgroup> rows_tile: array<vec4<f32>, 512>;
var<workgroup> outputs_tile: array<vec4<f32>, 512>;

fn put_quad(to_rows: bool, k: u32, column: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) {
  for (var i = 0u; i < 4u; i++) {
    let values = vec4<f32>(a[i], b[i], c[i], d[i]);
    if (to_rows) {
      rows_tile[(k + i) * 16u + column] = values;
    } else {
      outputs_tile[(k + i) * 16u + column] = values;
    }
  }
}

fn row_quad(row: u32, rows: u32, quad: u32) -> vec4<f32> {
  if (row >= rows || quad >= row_units() * 2u) {
    return vec4<f32>(0.0);
  }
  return source_quad(row * params.srcStride, quad);
}

fn output_eight(n: u32, unit: u32) -> Eight {
  if (n >= params.weightRows || unit >= row_units()) {
    return Eight(vec4<f32>(0.0), vec4<f32>(0.0));
  }
  return load8(0u, n, unit);
}

fn load_tiles(m: u32, n: u32, k: u32, rows: u32, thread: u32) {
  let column = thread % 16u;
  for (var part = 0u; part < 2u; part++) {
    let quad = thread / 16u + part * 4u;
    let row = m + column * 4u;
    put_quad(true, quad * 4u, column, row_quad(row, rows, k / 4u + quad), row_quad(row + 1u, rows, k / 4u + quad),
             row_quad(row + 2u, rows, k / 4u + quad), row_quad(row + 3u, rows, k / 4u + quad));
  }
  let unit = thread / 16u;
  let w0 = output_eight(n + column * 4u, k / 8u + unit);
  let w1 = output_eight(n + column * 4u + 1u, k / 8u + unit);
  let w2 = output_eight(n + column * 4u + 2u, k / 8u + unit);
  let w3 = output_eight(n + column * 4u + 3u, k / 8u + unit);
  put_quad(false, unit * 8u, column, w0.low, w1.low, w2.low, w3.low);
  put_quad(false, unit * 8u + 4u, column, w0.high, w1.high, w2.high, w3.high);
}

fn write_results(row: u32, rows: u32, n: u32, low: vec4<f32>, high: vec4<f32>) {
  if (row < rows && n < params.weightRows) {
    write_quad(row * params.dstStride + n, low);
  }
  if (row < rows && n + 32u < params.weightRows) {
    write_quad(row * params.dstStride + n + 32u, high);
  }
}

// entry tiled(params, batch, src, weight, dst) dispatch(weightRows / 64, rows / 64)
@compute @workgroup_size(64)
fn tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = batch[params.rowsAt];
  let m = group.y * 64u;
  let n = group.x * 64u;
  let tx = thread % 8u;
  let ty = thread / 8u;
  var a0 = vec4<f32>(0.0);
  var a1 = a0;
  var a2 = a0;
  var a3 = a0;
  var a4 = a0;
  var a5 = a0;
  var a6 = a0;
  var a7 = a0;
  var b0 = a0;
  var b1 = a0;
  var b2 = a0;
  var b3 = a0;
  var b4 = a0;
  var b5 = a0;
  var b6 = a0;
  var b7 = a0;
  for (var k = 0u; k < params.weightCols; k += kDepth) {
    load_tiles(m, n, k, rows, thread);
    workgroupBarrier();
    for (var i = 0u; i < min(kDepth, params.weightCols - k); i++) {
      let x = rows_tile[i * 16u + ty];
      let y = rows_tile[i * 16u + ty + 8u];
      let u = outputs_tile[i * 16u + tx];
      let v = outputs_tile[i * 16u + tx + 8u];
      a0 += x.x * u;
      b0 += x.x * v;
      a1 += x.y * u;
      b1 += x.y * v;
      a2 += x.z * u;
      b2 += x.z * v;
      a3 += x.w * u;
      b3 += x.w * v;
      a4 += y.x * u;
      b4 += y.x * v;
      a5 += y.y * u;
      b5 += y.y * v;
      a6 += y.z * u;
      b6 += y.z * v;
      a7 += y.w * u;
      b7 += y.w * v;
    }
    workgroupBarrier();
  }
  let row = m + ty * 4u;
  let at = n + tx * 4u;
  write_results(row, rows, at, a0, b0);
  write_results(row + 1u, rows, at, a1, b1);
  write_results(row + 2u, rows, at, a2, b2);
  write_results(row + 3u, rows, at, a3, b3);
  write_results(row + 32u, rows, at, a4, b4);
  write_results(row + 33u, rows, at, a5, b5);
  write_results(row + 34u, rows, at, a6, b6);
  write_results(row + 35u, rows, at, a7, b7);
}
