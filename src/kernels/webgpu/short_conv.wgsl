// A causal convolution of each column over the last `taps` positions. A page of its cache holds the rows of its
// positions; those of this batch are read from src, earlier ones from the cache. One thread a column of a row.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<u32>;
@group(0) @binding(3) var<storage, read_write> kv: array<f32>;
@group(0) @binding(4) var<storage, read_write> dst: array<f32>;
@group(0) @binding(5) var<uniform> params: Params;

struct Params {
  channels: u32,
  taps: u32,
  srcStride: u32,
  dstStride: u32,
  pagePositions: u32,
  pageStride: u32,  // in units of 16 bytes
}

override weightEncoding: u32;

// Rows of weights are padded to 8 elements.
fn weight_at(row: u32, tap: u32) -> f32 {
  let i = row * ((params.taps + 7u) / 8u * 8u) + tap;
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

fn cache_at(pages_at: u32, position: u32, column: u32) -> u32 {
  let page = batch[pages_at + position / params.pagePositions];
  return page * params.pageStride * 4u + position % params.pagePositions * params.channels + column;
}

// entry short_conv(params, batch, src, weight, kv, dst) dispatch(channels / 64, rows)
@compute @workgroup_size(64)
fn short_conv(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = group.x * 64u + thread;
  if (column >= params.channels) {
    return;
  }
  let row = group.y;
  let segment = batch[5] + batch[batch[4] + row] * 16u;
  let first_row = batch[segment];
  let first_position = batch[segment + 2u];
  let pages_at = batch[segment + 3u];
  let position = first_position + row - first_row;
  kv[cache_at(pages_at, position, column)] = src[row * params.srcStride + column];
  var sum = 0.0;
  for (var tap = select(0u, params.taps - 1u - position, position + 1u < params.taps); tap < params.taps; tap++) {
    let seen = position + tap + 1u - params.taps;
    var x = 0.0;
    if (seen >= first_position) {
      x = src[(first_row + seen - first_position) * params.srcStride + column];
    } else {
      x = kv[cache_at(pages_at, seen, column)];
    }
    sum += weight_at(column, tap) * x;
  }
  dst[row * params.dstStride + column] = sum;
}
