// Rotary position embedding of the first 2 F columns of each head, F the number of inverse frequencies; the others are
// copied. Sine and cosine are computed here: WGSL promises only an absolute error of 2^-11 for its own. The nearest
// multiple of π/2 is taken off in four parts whose products with the quotient are exact for angles below 2^17, then
// Taylor series to the 9th and 10th power: error below 4e-7.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> inverseFrequencies: array<f32>;
@group(0) @binding(3) var<storage, read_write> dst: array<f32>;
@group(0) @binding(4) var<uniform> params: Params;

struct Params {
  srcCols: u32,
  srcStride: u32,
  dstStride: u32,
  headDim: u32,
  style: u32,  // 0: pairs (i, i + F); 1: pairs (2 i, 2 i + 1)
  attentionScale: f32,
}

fn sine_cosine(x: f32) -> vec2<f32> {
  let quarter = round(x * 0.6366197723675814);
  let r = (((x - quarter * 1.5625) - quarter * 0.0081787109375) - quarter * 0.00011730194091796875) -
          quarter * 3.139164786504813e-07;
  let z = r * r;
  let s = r + r * z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z / 362880.0)));
  let c = 1.0 + z * (-0.5 + z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 - z / 3628800.0))));
  switch i32(quarter) & 3 {
    case 0: {
      return vec2<f32>(s, c);
    }
    case 1: {
      return vec2<f32>(c, -s);
    }
    case 2: {
      return vec2<f32>(-s, -c);
    }
    default: {
      return vec2<f32>(-c, s);
    }
  }
}

// A thread a pair, or a column that is copied.
// entry rope(params, batch, src, inverseFrequencies, dst) dispatch(srcCols / 64, rows)
@compute @workgroup_size(64)
fn rope(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let pairs = arrayLength(&inverseFrequencies);
  let tasks = params.headDim - pairs;
  let index = group.x * 64u + thread;
  let head = index / tasks;
  let task = index % tasks;
  if (head >= params.srcCols / params.headDim) {
    return;
  }
  let begin = group.y * params.srcStride + head * params.headDim;
  let to = group.y * params.dstStride + head * params.headDim;
  if (task >= pairs) {
    dst[to + pairs + task] = src[begin + pairs + task];
    return;
  }
  let position = batch[batch[2] + group.y];
  let turn = sine_cosine(f32(position) * inverseFrequencies[task]) * params.attentionScale;
  let first = select(task, 2u * task, params.style == 1u);
  let second = select(task + pairs, 2u * task + 1u, params.style == 1u);
  let x0 = src[begin + first];
  let x1 = src[begin + second];
  dst[to + first] = x0 * turn.y - x1 * turn.x;
  dst[to + second] = x1 * turn.y + x0 * turn.x;
}
