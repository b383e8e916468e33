// Kernels that compute each element from elements at the same place, and those that copy: one thread an element.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;
@group(0) @binding(3) var<storage, read> other: array<f32>;
@group(0) @binding(4) var<storage, read> up: array<f32>;
@group(0) @binding(5) var<storage, read> bias: array<u32>;
@group(0) @binding(6) var<storage, read_write> dst: array<f32>;
@group(0) @binding(7) var<uniform> params: Params;

struct Params {
  dstCols: u32,
  srcStride: u32,
  residualStride: u32,
  otherStride: u32,
  upStride: u32,
  dstStride: u32,
  activation: u32,  // 0 SiLU, 1 GELU by tanh, 2 GELU by erf, 3 ReLU
  scale: f32,
  cap: f32,
  offset: u32,
  rows: u32,  // of row_slice: 0 the last of each sequence, 1 all
}
override biasEncoding: u32;

const kThreads = 256u;

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

// Where hardware computes tanh by exponentials, large arguments overflow; from 10 on it is 1 in f32.
fn safe_tanh(x: f32) -> f32 {
  return tanh(clamp(x, -10.0, 10.0));
}

// Abramowitz and Stegun 7.1.26: error below 1.5e-7.
fn error_function(x: f32) -> f32 {
  let a = abs(x);
  let t = 1.0 / (1.0 + 0.3275911 * a);
  let series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(x) * (1.0 - series * exp(-min(a * a, 80.0)));
}

fn activated(x: f32) -> f32 {
  switch params.activation {
    case 0u: {
      return x / (1.0 + exp(min(-x, 80.0)));
    }
    case 1u: {
      return 0.5 * x * (1.0 + safe_tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
    }
    case 2u: {
      return 0.5 * x * (1.0 + error_function(x * 0.7071067812));
    }
    default: {
      return max(x, 0.0);
    }
  }
}

// entry residual_add(params, src, residual, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn residual_add(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    let other = residual[group.y * params.residualStride + i];
    dst[group.y * params.dstStride + i] = src[group.y * params.srcStride + i] + other;
  }
}

// entry multiply(params, src, other, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    dst[group.y * params.dstStride + i] = src[group.y * params.srcStride + i] * other[group.y * params.otherStride + i];
  }
}

// entry gated_activation(params, src, up, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn gated_activation(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    let gate = activated(src[group.y * params.srcStride + i]);
    dst[group.y * params.dstStride + i] = gate * up[group.y * params.upStride + i];
  }
}

// entry activate(params, src, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn activate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    dst[group.y * params.dstStride + i] = activated(src[group.y * params.srcStride + i]);
  }
}

// entry bias_add(params, src, bias, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn bias_add(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    dst[group.y * params.dstStride + i] = src[group.y * params.srcStride + i] + bias_at(i);
  }
}

// entry scaled(params, src, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn scaled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    dst[group.y * params.dstStride + i] = src[group.y * params.srcStride + i] * params.scale;
  }
}

// entry softcap(params, src, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn softcap(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    dst[group.y * params.dstStride + i] = params.cap * safe_tanh(src[group.y * params.srcStride + i] / params.cap);
  }
}

// entry slice_columns(params, src, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn slice_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i < params.dstCols) {
    dst[group.y * params.dstStride + i] = src[group.y * params.srcStride + params.offset + i];
  }
}

// entry row_slice(params, batch, src, dst) dispatch(dstCols / 256, rows)
@compute @workgroup_size(256)
fn row_slice(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let i = group.x * kThreads + thread;
  if (i >= params.dstCols) {
    return;
  }
  var begin = group.y;
  if (params.rows == 0u) {
    let segment = batch[5] + group.y * 16u;
    begin = batch[segment] + batch[segment + 1u] - 1u;
  }
  dst[group.y * params.dstStride + i] = src[begin * params.srcStride + i];
}
