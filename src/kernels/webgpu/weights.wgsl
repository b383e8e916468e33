// Kernels that read matrices of weights: rows of a table, and products of rows with a matrix. load8 and quant_product
// know how each encoding lies on the device (backends/webgpu/packed_weight.h); all arithmetic is f32. No feature is
// needed.
//
// A product is a sum of f32 products whose order is fixed by the shape of the weight alone, so a row's result does not
// depend on the rows beside it. gemv and tiled sum in different orders; their fused forms sum as they do.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> dst: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

// `weight` holds all matrices of a step, one behind the other, in one encoding.
override weightEncoding: u32;

struct Params {
  weightRows: u32,
  weightCols: u32,
  weightStride: u32,  // of experts, in units of 16 bytes
  weightCount: u32,
  upAt: u32,  // where the second of two begins, and of three; the same units
  kAt: u32,
  vAt: u32,
  qRows: u32,
  kRows: u32,
  vRows: u32,
  srcStride: u32,
  dstStride: u32,
  residualStride: u32,
  expertsStride: u32,
  perToken: u32,
  inputGroups: u32,
  activation: u32,  // 0 SiLU, 1 GELU by tanh, 2 GELU by erf
  rowsAt: u32,      // where `batch` has the number of rows
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

// Where a matrix of weightCols columns begins, in units of 16 bytes, and its rows.
struct Matrix {
  base: u32,
  rows: u32,
}

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

// The 6-bit scales of sub-blocks 2 pair and 2 pair + 1, then their minima, as Q4_K and Q5_K pack them.
fn scales_and_minima(bytes: vec3<u32>, pair: u32) -> vec4<f32> {
  let w = bytes >> vec3<u32>(16u * (pair % 2u));
  var s = w.x & 0x3f3fu;
  var m = w.y & 0x3f3fu;
  if (pair >= 2u) {
    s = (w.z & 0x0f0fu) | ((w.x & 0xc0c0u) >> 2u);
    m = ((w.z >> 4u) & 0x0f0fu) | ((w.y & 0xc0c0u) >> 2u);
  }
  return vec4<f32>(f32(s & 0xffu), f32(s >> 8u), f32(m & 0xffu), f32(m >> 8u));
}

fn row_units() -> u32 {
  return (params.weightCols + 7u) / 8u;
}

// Elements 8 * unit … 8 * unit + 7 of a row.
fn load8(matrix: Matrix, row: u32, unit: u32) -> Eight {
  switch weightEncoding {
    case F32: {
      let at = matrix.base + (row * row_units() + unit) * 2u;
      return Eight(bitcast<vec4<f32>>(weight[at]), bitcast<vec4<f32>>(weight[at + 1u]));
    }
    case F16: {
      let bits = weight[matrix.base + row * row_units() + unit];
      return Eight(vec4<f32>(unpack2x16float(bits.x), unpack2x16float(bits.y)),
                   vec4<f32>(unpack2x16float(bits.z), unpack2x16float(bits.w)));
    }
    case BF16: {
      let bits = weight[matrix.base + row * row_units() + unit];
      let even = bitcast<vec4<f32>>(bits << vec4<u32>(16u));
      let odd = bitcast<vec4<f32>>(bits & vec4<u32>(0xffff0000u));
      return Eight(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(even.z, odd.z, even.w, odd.w));
    }
    case Q8_0: {
      let block = row * (params.weightCols / 32u) + unit / 4u;
      let d = half_at(matrix.base + matrix.rows * (params.weightCols / 16u), block);
      let bits = words(matrix.base, block * 8u + unit % 4u * 2u);
      return Eight(d * signed_bytes(bits.x), d * signed_bytes(bits.y));
    }
    case Q4_0: {
      let block = row * (params.weightCols / 32u) + unit / 4u;
      let d = half_at(matrix.base + matrix.rows * (params.weightCols / 32u), block);
      let bits = (words(matrix.base, block * 4u + unit % 2u * 2u) >> vec2<u32>(unit % 4u / 2u * 4u)) &
                 vec2<u32>(0x0f0f0f0fu);
      return Eight(d * (unsigned_bytes(bits.x) - 8.0), d * (unsigned_bytes(bits.y) - 8.0));
    }
    case Q4_K: {
      let block = matrix.base + (row * (params.weightCols / 256u) + unit / 32u) * 9u;
      let at = unit % 32u * 8u;
      let head = weight[block];
      let scales = scales_and_minima(head.yzw, at / 64u);
      let second = at / 32u % 2u;
      let factors = unpack2x16float(head.x) * vec2<f32>(scales[second], scales[2u + second]);
      let bits = (words(block + 1u, at / 64u * 8u + at % 32u / 4u) >> vec2<u32>(second * 4u)) &
                 vec2<u32>(0x0f0f0f0fu);
      return Eight(factors.x * unsigned_bytes(bits.x) - factors.y, factors.x * unsigned_bytes(bits.y) - factors.y);
    }
    case Q5_K: {
      let block = matrix.base + (row * (params.weightCols / 256u) + unit / 32u) * 11u;
      let at = unit % 32u * 8u;
      let head = weight[block];
      let scales = scales_and_minima(head.yzw, at / 64u);
      let second = at / 32u % 2u;
      let factors = unpack2x16float(head.x) * vec2<f32>(scales[second], scales[2u + second]);
      let low = (words(block + 3u, at / 64u * 8u + at % 32u / 4u) >> vec2<u32>(second * 4u)) &
                vec2<u32>(0x0f0f0f0fu);
      let high = (words(block + 1u, at % 32u / 4u) >> vec2<u32>(at / 32u)) & vec2<u32>(0x01010101u);
      let bits = low | (high << vec2<u32>(4u));
      return Eight(factors.x * unsigned_bytes(bits.x) - factors.y, factors.x * unsigned_bytes(bits.y) - factors.y);
    }
    default: {  // Q6_K
      let blocks = matrix.rows * (params.weightCols / 256u);
      let block = row * (params.weightCols / 256u) + unit / 32u;
      let at = unit % 32u * 8u;
      let in_half = at % 128u;
      let low = (words(matrix.base, block * 32u + at / 128u * 16u + in_half % 64u / 4u) >>
                 vec2<u32>(in_half / 64u * 4u)) & vec2<u32>(0x0f0f0f0fu);
      let high = (words(matrix.base + blocks * 8u, block * 16u + at / 128u * 8u + in_half % 32u / 4u) >>
                  vec2<u32>(in_half / 32u * 2u)) & vec2<u32>(0x03030303u);
      let bits = low | (high << vec2<u32>(4u));
      let scales = weight[matrix.base + blocks * 12u + block];
      let d = half_at(matrix.base + blocks * 13u, block) * signed_bytes(scales[at / 64u])[at / 16u % 4u];
      return Eight(d * (unsigned_bytes(bits.x) - 32.0), d * (unsigned_bytes(bits.y) - 32.0));
    }
  }
}

// Elements 4 * quad … of a row of src that begins at `first`, a multiple of 4, and has weightCols elements; 0 behind its
// end, where anything may lie.
fn source_quad(first: u32, quad: u32) -> vec4<f32> {
  let values = src[first / 4u + quad];
  if (params.weightCols % 8u == 0u) {
    return values;
  }
  let at = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
  return select(vec4<f32>(0.0), values, at < vec4<u32>(params.weightCols));
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

// Where hardware computes tanh by exponentials, large arguments overflow; from 10 on it is 1 in f32. The error function
// is Abramowitz and Stegun's 7.1.26: error below 1.5e-7.
fn activated(x: f32) -> f32 {
  switch params.activation {
    case 0u: {
      return x / (1.0 + exp(min(-x, 80.0)));
    }
    case 1u: {
      return 0.5 * x * (1.0 + tanh(clamp(0.7978845608 * (x + 0.044715 * x * x * x), -10.0, 10.0)));
    }
    default: {
      let a = abs(x) * 0.7071067812;
      let t = 1.0 / (1.0 + 0.3275911 * a);
      let series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
      return 0.5 * x * (1.0 + sign(x) * (1.0 - series * exp(-min(a * a, 80.0))));
    }
  }
}

fn gated(x: vec4<f32>, y: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(activated(x.x), activated(x.y), activated(x.z), activated(x.w)) * y;
}

fn whole(rows: u32) -> Matrix {
  return Matrix(0u, rows);
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
    values = load8(whole(params.weightRows), index, unit);
  }
  let first = group.y * params.dstStride + unit * 8u;
  write_quad(first, values.low * params.scale);
  write_quad(first + 4u, values.high * params.scale);
}

// Products of one row of src. A workgroup of 128 threads takes four rows of the matrix. Plain numbers: each thread takes
// units of 8 inputs of all four rows. Blocks: threads take items of 32 inputs, each 16 or 32 bytes of quants that lie
// together, the first 64 threads of two rows and the others of two more.
const kGemvThreads = 128u;
var<workgroup> sums: array<vec4<f32>, 128>;

// An item's inputs: 16 from one place and 16 from another, and their sums.
struct Inputs {
  a0: vec4<f32>,
  a1: vec4<f32>,
  a2: vec4<f32>,
  a3: vec4<f32>,
  b0: vec4<f32>,
  b1: vec4<f32>,
  b2: vec4<f32>,
  b3: vec4<f32>,
  a_sum: f32,
  b_sum: f32,
}

fn sum_of(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> f32 {
  return dot((a + b) + (c + d), vec4<f32>(1.0));
}

// The first of an item's two runs of 16 inputs, and how far behind the second one is.
fn runs_of(item: u32) -> vec2<u32> {
  switch weightEncoding {
    case Q4_K, Q5_K: {
      return vec2<u32>(item / 2u * 64u + item % 2u * 16u, 32u);
    }
    case Q6_K: {
      return vec2<u32>(item / 4u * 128u + item % 4u * 16u, 64u);
    }
    default: {
      return vec2<u32>(item * 32u, 16u);
    }
  }
}

fn inputs_of(first: u32, item: u32) -> Inputs {
  let runs = runs_of(item);
  let a = (first + runs.x) / 4u;
  let b = a + runs.y / 4u;
  var x = Inputs(src[a], src[a + 1u], src[a + 2u], src[a + 3u], src[b], src[b + 1u], src[b + 2u], src[b + 3u], 0.0, 0.0);
  x.a_sum = sum_of(x.a0, x.a1, x.a2, x.a3);
  x.b_sum = sum_of(x.b0, x.b1, x.b2, x.b3);
  return x;
}

fn signed_product(bits: vec4<u32>, x0: vec4<f32>, x1: vec4<f32>, x2: vec4<f32>, x3: vec4<f32>) -> f32 {
  return (dot(signed_bytes(bits.x), x0) + dot(signed_bytes(bits.y), x1)) +
         (dot(signed_bytes(bits.z), x2) + dot(signed_bytes(bits.w), x3));
}

// The products with 16 unsigned bytes each: of bits with the first run, of more with the second.
fn unsigned_products(bits: vec4<u32>, more: vec4<u32>, x: Inputs) -> vec2<f32> {
  return vec2<f32>((dot(unsigned_bytes(bits.x), x.a0) + dot(unsigned_bytes(bits.y), x.a1)) +
                   (dot(unsigned_bytes(bits.z), x.a2) + dot(unsigned_bytes(bits.w), x.a3)),
                   (dot(unsigned_bytes(more.x), x.b0) + dot(unsigned_bytes(more.y), x.b1)) +
                   (dot(unsigned_bytes(more.z), x.b2) + dot(unsigned_bytes(more.w), x.b3)));
}

// One item of a row of blocks times its inputs.
fn quant_product(matrix: Matrix, row: u32, item: u32, x: Inputs) -> f32 {
  switch weightEncoding {
    case Q8_0: {
      let block = row * (params.weightCols / 32u) + item;
      let d = half_at(matrix.base + matrix.rows * (params.weightCols / 16u), block);
      let at = matrix.base + block * 2u;
      return d * (signed_product(weight[at], x.a0, x.a1, x.a2, x.a3) + signed_product(weight[at + 1u], x.b0, x.b1, x.b2, x.b3));
    }
    case Q4_0: {
      let block = row * (params.weightCols / 32u) + item;
      let d = half_at(matrix.base + matrix.rows * (params.weightCols / 32u), block);
      let bits = weight[matrix.base + block];
      let mask = vec4<u32>(0x0f0f0f0fu);
      let products = unsigned_products(bits & mask, (bits >> vec4<u32>(4u)) & mask, x);
      return d * ((products.x - 8.0 * x.a_sum) + (products.y - 8.0 * x.b_sum));
    }
    case Q4_K: {
      let block = matrix.base + (row * (params.weightCols / 256u) + item / 8u) * 9u;
      let head = weight[block];
      let d = unpack2x16float(head.x);
      let scales = scales_and_minima(head.yzw, item % 8u / 2u);
      let bits = weight[block + 1u + item % 8u];
      let mask = vec4<u32>(0x0f0f0f0fu);
      let products = unsigned_products(bits & mask, (bits >> vec4<u32>(4u)) & mask, x);
      return d.x * dot(scales.xy, products) - d.y * dot(scales.zw, vec2<f32>(x.a_sum, x.b_sum));
    }
    case Q5_K: {
      let block = matrix.base + (row * (params.weightCols / 256u) + item / 8u) * 11u;
      let head = weight[block];
      let d = unpack2x16float(head.x);
      let pair = item % 8u / 2u;
      let scales = scales_and_minima(head.yzw, pair);
      let bits = weight[block + 3u + item % 8u];
      let high = weight[block + 1u + item % 2u] >> vec4<u32>(2u * pair);
      let mask = vec4<u32>(0x0f0f0f0fu);
      let bit = vec4<u32>(0x01010101u);
      let products = unsigned_products((bits & mask) | ((high & bit) << vec4<u32>(4u)),
                                       ((bits >> vec4<u32>(4u)) & mask) | (((high >> vec4<u32>(1u)) & bit) << vec4<u32>(4u)), x);
      return d.x * dot(scales.xy, products) - d.y * dot(scales.zw, vec2<f32>(x.a_sum, x.b_sum));
    }
    default: {  // Q6_K
      let blocks = matrix.rows * (params.weightCols / 256u);
      let block = row * (params.weightCols / 256u) + item / 8u;
      let part = item % 4u;
      let half = item % 8u / 4u;
      let bits = weight[matrix.base + block * 8u + half * 4u + part];
      let high = weight[matrix.base + blocks * 8u + block * 4u + half * 2u + part % 2u] >> vec4<u32>(part / 2u * 2u);
      let low = vec4<u32>(0x0f0f0f0fu);
      let two = vec4<u32>(0x03030303u);
      let products = unsigned_products((bits & low) | ((high & two) << vec4<u32>(4u)),
                                       ((bits >> vec4<u32>(4u)) & low) | (((high >> vec4<u32>(4u)) & two) << vec4<u32>(4u)), x);
      let scales = weight[matrix.base + blocks * 12u + block];
      let d = half_at(matrix.base + blocks * 13u, block);
      return d * (signed_bytes(scales[half * 2u])[part] * (products.x - 32.0 * x.a_sum) +
                  signed_bytes(scales[half * 2u + 1u])[part] * (products.y - 32.0 * x.b_sum));
    }
  }
}

fn plain_products(matrix: Matrix, first: u32, n: u32, thread: u32) -> vec4<f32> {
  let last = matrix.rows - 1u;
  let n1 = min(n + 1u, last);
  let n2 = min(n + 2u, last);
  let n3 = min(n + 3u, last);
  var sum = vec4<f32>(0.0);
  for (var unit = thread; unit < row_units(); unit += kGemvThreads) {
    let w0 = load8(matrix, n, unit);
    let w1 = load8(matrix, n1, unit);
    let w2 = load8(matrix, n2, unit);
    let w3 = load8(matrix, n3, unit);
    let low = source_quad(first, unit * 2u);
    let high = source_quad(first, unit * 2u + 1u);
    sum += vec4<f32>(dot(low, w0.low), dot(low, w1.low), dot(low, w2.low), dot(low, w3.low));
    sum += vec4<f32>(dot(high, w0.high), dot(high, w1.high), dot(high, w2.high), dot(high, w3.high));
  }
  return sum;
}

fn block_products(matrix: Matrix, first: u32, n: u32, thread: u32) -> vec4<f32> {
  let last = matrix.rows - 1u;
  let upper = thread / 64u;
  let n0 = min(n + upper * 2u, last);
  let n1 = min(n + upper * 2u + 1u, last);
  var sum = vec2<f32>(0.0);
  for (var item = thread % 64u; item < params.weightCols / 32u; item += 64u) {
    let x = inputs_of(first, item);
    sum += vec2<f32>(quant_product(matrix, n0, item, x), quant_product(matrix, n1, item, x));
  }
  return select(vec4<f32>(sum, 0.0, 0.0), vec4<f32>(0.0, 0.0, sum), upper == 1u);
}

// The products of the row of src at `first` with rows n … n + 3 of a matrix, in every thread.
fn four_products(matrix: Matrix, first: u32, n: u32, thread: u32) -> vec4<f32> {
  if (weightEncoding <= BF16) {
    sums[thread] = plain_products(matrix, first, n, thread);
  } else {
    sums[thread] = block_products(matrix, first, n, thread);
  }
  workgroupBarrier();
  for (var half = kGemvThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      sums[thread] += sums[thread + half];
    }
    workgroupBarrier();
  }
  let products = sums[0];
  workgroupBarrier();
  return products;
}

fn write_four(first: u32, rows: u32, n: u32, thread: u32, values: vec4<f32>) {
  if (thread < 4u && n + thread < rows) {
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
  let values = four_products(whole(params.weightRows), group.z * params.srcStride, n, thread);
  write_four(group.z * params.dstStride, params.weightRows, n, thread, values);
}

// entry residual_gemv(params, src, residual, weight, dst) dispatch(fold(weightRows / 4), rows)
@compute @workgroup_size(128)
fn residual_gemv(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                 @builtin(local_invocation_index) thread: u32) {
  let n = (group.x + group.y * groups.x) * 4u;
  if (n >= params.weightRows) {
    return;
  }
  let values = four_products(whole(params.weightRows), group.z * params.srcStride, n, thread);
  if (thread < 4u && n + thread < params.weightRows) {
    let at = group.z * params.residualStride + n + thread;
    dst[group.z * params.dstStride + n + thread] = values[thread] + residual[at];
  }
}

// entry gated_gemv(params, src, weight, dst) dispatch(fold(weightRows / 4), rows)
@compute @workgroup_size(128)
fn gated_gemv(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
  let n = (group.x + group.y * groups.x) * 4u;
  if (n >= params.weightRows) {
    return;
  }
  let first = group.z * params.srcStride;
  let x = four_products(whole(params.weightRows), first, n, thread);
  let y = four_products(Matrix(params.upAt, params.weightRows), first, n, thread);
  write_four(group.z * params.dstStride, params.weightRows, n, thread, gated(x, y));
}

// Which of q, k and v a workgroup takes a part of: each has its own groups of `size` outputs, numbered through.
struct Choice {
  matrix: Matrix,
  n: u32,       // its first output, of that matrix; not below its rows behind the last group
  column: u32,  // of dst, where the matrix's outputs begin
}

fn choose(index: u32, size: u32) -> Choice {
  let q_groups = (params.qRows + size - 1u) / size;
  let k_groups = (params.kRows + size - 1u) / size;
  if (index < q_groups) {
    return Choice(whole(params.qRows), index * size, 0u);
  }
  if (index < q_groups + k_groups) {
    return Choice(Matrix(params.kAt, params.kRows), (index - q_groups) * size, params.qRows);
  }
  return Choice(Matrix(params.vAt, params.vRows), (index - q_groups - k_groups) * size, params.qRows + params.kRows);
}

// entry qkv_gemv(params, src, weight, dst) dispatch(fold(dstCols / 4 + 2), rows)
@compute @workgroup_size(128)
fn qkv_gemv(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
            @builtin(local_invocation_index) thread: u32) {
  let choice = choose(group.x + group.y * groups.x, 4u);
  if (choice.n >= choice.matrix.rows) {
    return;
  }
  let values = four_products(choice.matrix, group.z * params.srcStride, choice.n, thread);
  write_four(group.z * params.dstStride + choice.column, choice.matrix.rows, choice.n, thread, values);
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
  let matrix = Matrix(min(expert, params.weightCount - 1u) * params.weightStride, params.weightRows);
  var values = four_products(matrix, first, n, thread);
  if (expert >= params.weightCount) {
    values = vec4<f32>(not_a_number(expert));
  }
  write_four(row * params.dstStride + choice * params.weightRows, params.weightRows, n, thread, values);
}

var<workgroup> parts: array<Eight, 64>;

// The weight is stored as inputs by outputs: eight threads share eight outputs, each with every eighth input.
// entry transposed(params, src, weight, dst) dispatch(weightCols / 64, rows)
@compute @workgroup_size(64)
fn transposed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let unit = group.x * 8u + thread % 8u;
  var sum = Eight(vec4<f32>(0.0), vec4<f32>(0.0));
  if (unit < row_units()) {
    for (var i = thread / 8u; i < params.weightRows; i += 8u) {
      let at = group.y * params.srcStride + i;
      let x = src[at / 4u][at % 4u];
      let w = load8(whole(params.weightRows), i, unit);
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

// Products of many rows. A workgroup takes 64 rows and 128 outputs, 32 inputs at a time; each of 128 threads owns 8 by 8
// results: rows 4 ty … + 3 and 32 more behind, outputs 4 tx … + 3 and 64 more behind. Tiles hold four rows (outputs) of
// one input side by side. What comes next is read while products are computed: the next inputs' operands from the tile,
// the next tile from memory.
const kDepth = 32u;
var<workgroup> rows_tile: array<vec4<f32>, 528>;      // [input][row / 4], and one input more
var<workgroup> outputs_tile: array<vec4<f32>, 1056>;  // [input][output / 4], the same

// Four rows (outputs) of four inputs.
struct Sixteen {
  a: vec4<f32>,
  b: vec4<f32>,
  c: vec4<f32>,
  d: vec4<f32>,
}

fn row_quad(row: u32, rows: u32, quad: u32) -> vec4<f32> {
  if (row >= rows || quad >= row_units() * 2u) {
    return vec4<f32>(0.0);
  }
  return source_quad(row * params.srcStride, quad);
}

fn output_eight(matrix: Matrix, n: u32, unit: u32) -> Eight {
  if (n >= matrix.rows || unit >= row_units()) {
    return Eight(vec4<f32>(0.0), vec4<f32>(0.0));
  }
  return load8(matrix, n, unit);
}

// Which of a tile's columns of four, and which four or eight inputs, a thread moves: eight neighbouring columns to each
// eight threads, so that they write to all banks.
fn row_column(thread: u32) -> u32 {
  return thread % 8u + thread / 64u * 8u;
}

fn row_part(thread: u32) -> u32 {
  return thread / 8u % 8u;
}

fn output_column(thread: u32) -> u32 {
  return thread % 8u + thread / 32u * 8u;
}

fn output_part(thread: u32) -> u32 {
  return thread / 8u % 4u;
}

fn four_rows(m: u32, rows: u32, at: u32, thread: u32) -> Sixteen {
  let row = m + row_column(thread) * 4u;
  let quad = at / 4u + row_part(thread);
  return Sixteen(row_quad(row, rows, quad), row_quad(row + 1u, rows, quad), row_quad(row + 2u, rows, quad),
                 row_quad(row + 3u, rows, quad));
}

fn put_rows(x: Sixteen, thread: u32) {
  let at = row_part(thread) * 64u + row_column(thread);
  rows_tile[at] = vec4<f32>(x.a.x, x.b.x, x.c.x, x.d.x);
  rows_tile[at + 16u] = vec4<f32>(x.a.y, x.b.y, x.c.y, x.d.y);
  rows_tile[at + 32u] = vec4<f32>(x.a.z, x.b.z, x.c.z, x.d.z);
  rows_tile[at + 48u] = vec4<f32>(x.a.w, x.b.w, x.c.w, x.d.w);
}

fn put_outputs(a: Eight, b: Eight, c: Eight, d: Eight, thread: u32) {
  let at = output_part(thread) * 256u + output_column(thread);
  outputs_tile[at] = vec4<f32>(a.low.x, b.low.x, c.low.x, d.low.x);
  outputs_tile[at + 32u] = vec4<f32>(a.low.y, b.low.y, c.low.y, d.low.y);
  outputs_tile[at + 64u] = vec4<f32>(a.low.z, b.low.z, c.low.z, d.low.z);
  outputs_tile[at + 96u] = vec4<f32>(a.low.w, b.low.w, c.low.w, d.low.w);
  outputs_tile[at + 128u] = vec4<f32>(a.high.x, b.high.x, c.high.x, d.high.x);
  outputs_tile[at + 160u] = vec4<f32>(a.high.y, b.high.y, c.high.y, d.high.y);
  outputs_tile[at + 192u] = vec4<f32>(a.high.z, b.high.z, c.high.z, d.high.z);
  outputs_tile[at + 224u] = vec4<f32>(a.high.w, b.high.w, c.high.w, d.high.w);
}

// A thread's results: rows in the order above, of each four outputs and then the four far ones.
struct Results {
  near: array<vec4<f32>, 8>,
  far: array<vec4<f32>, 8>,
}

fn accumulate(s: ptr<function, Results>, x: vec4<f32>, y: vec4<f32>, u: vec4<f32>, w: vec4<f32>) {
  s.near[0] += x.x * u;
  s.far[0] += x.x * w;
  s.near[1] += x.y * u;
  s.far[1] += x.y * w;
  s.near[2] += x.z * u;
  s.far[2] += x.z * w;
  s.near[3] += x.w * u;
  s.far[3] += x.w * w;
  s.near[4] += y.x * u;
  s.far[4] += y.x * w;
  s.near[5] += y.y * u;
  s.far[5] += y.y * w;
  s.near[6] += y.z * u;
  s.far[6] += y.z * w;
  s.near[7] += y.w * u;
  s.far[7] += y.w * w;
}

fn thread_x(thread: u32) -> u32 {
  return thread % 8u + thread / 32u % 2u * 8u;
}

fn thread_y(thread: u32) -> u32 {
  return thread / 8u % 4u + thread / 64u * 4u;
}

fn accumulate_tile(s: ptr<function, Results>, thread: u32) {
  let tx = thread_x(thread);
  let ty = thread_y(thread);
  var x = rows_tile[ty];
  var y = rows_tile[ty + 8u];
  var u = outputs_tile[tx];
  var w = outputs_tile[tx + 16u];
  for (var i = 0u; i < kDepth; i += 2u) {
    let r = i * 16u + ty;
    let o = i * 32u + tx;
    let x1 = rows_tile[r + 16u];
    let y1 = rows_tile[r + 24u];
    let u1 = outputs_tile[o + 32u];
    let w1 = outputs_tile[o + 48u];
    accumulate(s, x, y, u, w);
    x = rows_tile[r + 32u];
    y = rows_tile[r + 40u];
    u = outputs_tile[o + 64u];
    w = outputs_tile[o + 80u];
    accumulate(s, x1, y1, u1, w1);
  }
}

// Rows m … m + 63 times outputs n … n + 63 of one matrix and far … far + 63 of another or the same.
fn tile_products(matrix: Matrix, n: u32, other: Matrix, far: u32, m: u32, rows: u32, thread: u32) -> Results {
  var results = Results();
  let column = output_column(thread) * 4u;
  let is_far = column >= 64u;
  let origin = Matrix(select(matrix.base, other.base, is_far), select(matrix.rows, other.rows, is_far));
  let output = select(n + column, far + column - 64u, is_far);
  var x = four_rows(m, rows, 0u, thread);
  var a = output_eight(origin, output, output_part(thread));
  var b = output_eight(origin, output + 1u, output_part(thread));
  var c = output_eight(origin, output + 2u, output_part(thread));
  var d = output_eight(origin, output + 3u, output_part(thread));
  for (var at = kDepth; at < params.weightCols + kDepth; at += kDepth) {
    put_rows(x, thread);
    put_outputs(a, b, c, d, thread);
    workgroupBarrier();
    let unit = at / 8u + output_part(thread);
    x = four_rows(m, rows, at, thread);
    a = output_eight(origin, output, unit);
    b = output_eight(origin, output + 1u, unit);
    c = output_eight(origin, output + 2u, unit);
    d = output_eight(origin, output + 3u, unit);
    accumulate_tile(&results, thread);
    workgroupBarrier();
  }
  return results;
}

// The row of a thread's i-th results.
fn result_row(m: u32, i: u32, thread: u32) -> u32 {
  return m + thread_y(thread) * 4u + i % 4u + i / 4u * 32u;
}

// Writes them to columns `first` … of dst, those of outputs n … of a matrix.
fn write_results(results: Results, m: u32, rows: u32, outputs: u32, n: u32, first: u32, thread: u32) {
  let near = n + thread_x(thread) * 4u;
  var copy = results;
  for (var i = 0u; i < 8u; i++) {
    let row = result_row(m, i, thread);
    let to = row * params.dstStride + first;
    if (row < rows) {
      write_outputs(to, outputs, near, copy.near[i]);
      write_outputs(to, outputs, near + 64u, copy.far[i]);
    }
  }
}

fn write_outputs(to: u32, outputs: u32, n: u32, values: vec4<f32>) {
  for (var i = 0u; i < 4u && n + i < outputs; i++) {
    dst[to + n + i] = values[i];
  }
}

// entry tiled(params, batch, src, weight, dst) dispatch(weightRows / 128, rows / 64)
@compute @workgroup_size(128)
fn tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = batch[params.rowsAt];
  let m = group.y * 64u;
  let n = group.x * 128u;
  let results = tile_products(whole(params.weightRows), n, whole(params.weightRows), n + 64u, m, rows, thread);
  write_results(results, m, rows, params.weightRows, n, 0u, thread);
}

// entry residual_tiled(params, batch, src, residual, weight, dst) dispatch(weightRows / 128, rows / 64)
@compute @workgroup_size(128)
fn residual_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = batch[params.rowsAt];
  let m = group.y * 64u;
  let n = group.x * 128u;
  var results = tile_products(whole(params.weightRows), n, whole(params.weightRows), n + 64u, m, rows, thread);
  for (var i = 0u; i < 8u; i++) {
    let at = result_row(m, i, thread) * params.residualStride + n + thread_x(thread) * 4u;
    results.near[i] += vec4<f32>(residual[at], residual[at + 1u], residual[at + 2u], residual[at + 3u]);
    results.far[i] += vec4<f32>(residual[at + 64u], residual[at + 65u], residual[at + 66u], residual[at + 67u]);
  }
  write_results(results, m, rows, params.weightRows, n, 0u, thread);
}

// The same outputs of gate and up are a thread's near and far ones.
// entry gated_tiled(params, batch, src, weight, dst) dispatch(weightRows / 64, rows / 64)
@compute @workgroup_size(128)
fn gated_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = batch[params.rowsAt];
  let m = group.y * 64u;
  let n = group.x * 64u;
  var results = tile_products(whole(params.weightRows), n, Matrix(params.upAt, params.weightRows), n, m, rows, thread);
  for (var i = 0u; i < 8u; i++) {
    let row = result_row(m, i, thread);
    if (row < rows) {
      let values = gated(results.near[i], results.far[i]);
      write_outputs(row * params.dstStride, params.weightRows, n + thread_x(thread) * 4u, values);
    }
  }
}

// entry qkv_tiled(params, batch, src, weight, dst) dispatch(dstCols / 128 + 2, rows / 64)
@compute @workgroup_size(128)
fn qkv_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let rows = batch[params.rowsAt];
  let m = group.y * 64u;
  let choice = choose(group.x, 128u);
  if (choice.n >= choice.matrix.rows) {
    return;
  }
  let results = tile_products(choice.matrix, choice.n, choice.matrix, choice.n + 64u, m, rows, thread);
  write_results(results, m, rows, choice.matrix.rows, choice.n, choice.column, thread);
}
