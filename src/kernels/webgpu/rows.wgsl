// Kernels that reduce rows: norms, softmax, pooling. A workgroup owns a row, or a group of columns of one; thread t
// sums elements t, t + 256, … and the sums fold in a fixed tree, so a row's result does not depend on the rows beside
// it.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<u32>;
@group(0) @binding(4) var<storage, read_write> dst: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

struct Params {
  srcCols: u32,
  srcStride: u32,
  dstStride: u32,
  eps: f32,
  width: u32,
  weightOffset: f32,
  kind: u32,  // of pool: 0 mean, 1 last, 2 first
}

override weightEncoding: u32;
override biasEncoding: u32;

const kThreads = 256u;
var<workgroup> partial: array<f32, 256>;

fn sum_of_all(value: f32, thread: u32) -> f32 {
  partial[thread] = value;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      partial[thread] += partial[thread + half];
    }
    workgroupBarrier();
  }
  let sum = partial[0];
  workgroupBarrier();
  return sum;
}

fn largest_of_all(value: f32, thread: u32) -> f32 {
  partial[thread] = value;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      partial[thread] = max(partial[thread], partial[thread + half]);
    }
    workgroupBarrier();
  }
  let largest = partial[0];
  workgroupBarrier();
  return largest;
}

fn weight_at(i: u32) -> f32 {
  switch weightEncoding {
    case 1u: {
      return unpack2x16float(weight[i / 2u])[i % 2u];
    }
    case 2u: {
      return bitcast<f32>((weight[i / 2u] >> (i % 2u * 16u)) << 16u);
    }
    default: {
      return bitcast<f32>(weight[i]);
    }
  }
}

fn bias_at(i: u32) -> f32 {
  switch biasEncoding {
    case 1u: {
      return unpack2x16float(bias[i / 2u])[i % 2u];
    }
    case 2u: {
      return bitcast<f32>((bias[i / 2u] >> (i % 2u * 16u)) << 16u);
    }
    default: {
      return bitcast<f32>(bias[i]);
    }
  }
}

// entry rmsnorm(params, src, weight, dst) dispatch(srcCols / width, rows)
@compute @workgroup_size(256)
fn rmsnorm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let begin = group.y * params.srcStride + group.x * params.width;
  let to = group.y * params.dstStride + group.x * params.width;
  var squares = 0.0;
  for (var i = thread; i < params.width; i += kThreads) {
    squares += src[begin + i] * src[begin + i];
  }
  let inverse = 1.0 / sqrt(sum_of_all(squares, thread) / f32(params.width) + params.eps);
  for (var i = thread; i < params.width; i += kThreads) {
    dst[to + i] = src[begin + i] * inverse * (weight_at(i) + params.weightOffset);
  }
}

// entry layernorm(params, src, weight, bias, dst) dispatch(1, rows)
@compute @workgroup_size(256)
fn layernorm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let begin = group.y * params.srcStride;
  var sum = 0.0;
  for (var i = thread; i < params.srcCols; i += kThreads) {
    sum += src[begin + i];
  }
  let mean = sum_of_all(sum, thread) / f32(params.srcCols);
  var squares = 0.0;
  for (var i = thread; i < params.srcCols; i += kThreads) {
    let deviation = src[begin + i] - mean;
    squares += deviation * deviation;
  }
  let inverse = 1.0 / sqrt(sum_of_all(squares, thread) / f32(params.srcCols) + params.eps);
  for (var i = thread; i < params.srcCols; i += kThreads) {
    dst[group.y * params.dstStride + i] = (src[begin + i] - mean) * inverse * weight_at(i) + bias_at(i);
  }
}

// entry softmax(params, src, dst) dispatch(1, rows)
@compute @workgroup_size(256)
fn softmax(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let begin = group.y * params.srcStride;
  var most = -3.4e38;
  for (var i = thread; i < params.srcCols; i += kThreads) {
    most = max(most, src[begin + i]);
  }
  let largest = largest_of_all(most, thread);
  var sum = 0.0;
  for (var i = thread; i < params.srcCols; i += kThreads) {
    sum += exp(src[begin + i] - largest);
  }
  let total = sum_of_all(sum, thread);
  for (var i = thread; i < params.srcCols; i += kThreads) {
    dst[group.y * params.dstStride + i] = exp(src[begin + i] - largest) / total;
  }
}

// entry l2_normalize(params, src, dst) dispatch(1, rows)
@compute @workgroup_size(256)
fn l2_normalize(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let begin = group.y * params.srcStride;
  var squares = 0.0;
  for (var i = thread; i < params.srcCols; i += kThreads) {
    squares += src[begin + i] * src[begin + i];
  }
  let length = max(sqrt(sum_of_all(squares, thread)), params.eps);
  for (var i = thread; i < params.srcCols; i += kThreads) {
    dst[group.y * params.dstStride + i] = src[begin + i] / length;
  }
}

// A sequence's rows: the mean and the first are of a whole sequence; a segment that continues one gives NaNs.
// entry pool(params, batch, src, dst) dispatch(srcCols / 256, rows)
@compute @workgroup_size(256)
fn pool(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = group.x * kThreads + thread;
  if (column >= params.srcCols) {
    return;
  }
  let segment = batch[5] + group.y * 16u;
  let rows = batch[segment + 1u];
  let first = batch[segment] + select(0u, rows - 1u, params.kind == 1u);
  let count = select(1u, rows, params.kind == 0u);
  var sum = 0.0;
  for (var r = 0u; r < count; r++) {
    sum += src[(first + r) * params.srcStride + column];
  }
  var value = sum / f32(count);
  if (params.kind != 1u && batch[segment + 2u] != 0u) {
    value = bitcast<f32>(0x7fc00000u | (column & 1u));
  }
  dst[group.y * params.dstStride + column] = value;
}
