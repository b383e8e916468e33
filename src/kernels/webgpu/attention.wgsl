// Attention over a paged KV cache: writes the batch's keys and values, and attends. A workgroup owns one query of one
// head. Positions of this batch are read from the slots k and v, earlier ones from the cache, so that one dispatch can
// do both. A block of 128 positions at a time: each thread scores one position, then the block's exponentials weigh the
// values (online softmax; Milakov and Gimelshein 2018). The same for any batch; blocks begin at the first visible
// position.
//
// A page holds, for each key/value head, the keys of its positions and then their values, each position's in units of
// 16 bytes: 4 f32 or 8 f16, zeros behind the last.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read_write> kv: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> dst: array<f32>;
@group(0) @binding(6) var<uniform> params: Params;

struct Params {
  heads: u32,
  kvHeads: u32,
  headDim: u32,
  scale: f32,
  window: u32,
  softcap: f32,
  causal: u32,
  srcStride: u32,
  kStride: u32,
  vStride: u32,
  dstStride: u32,
  pagePositions: u32,
  pageStride: u32,  // in units of 16 bytes
}

override kvEncoding: u32;                      // 0 f32, 1 f16

const kThreads = 128u;
const kLowest = -3.4e38;
override unitSize: u32 = 4u + 4u * kvEncoding;  // elements of 16 bytes

var<workgroup> query: array<vec4<f32>, 128>;  // heads of up to 512 columns
var<workgroup> weights: array<f32, 128>;
var<workgroup> reduced: array<f32, 128>;
var<workgroup> sums: array<Eight, 128>;

// As many numbers as a unit holds; of f32 only `low`.
struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
}

struct Segment {
  first_row: u32,
  first_position: u32,
  pages_at: u32,
  end: u32,  // the position after its last row
}

// Units of a head's columns.
fn head_units() -> u32 {
  return (params.headDim + unitSize - 1u) / unitSize;
}

fn segment_of(row: u32) -> Segment {
  let at = batch[5] + batch[batch[4] + row] * 16u;
  return Segment(batch[at], batch[at + 2u], batch[at + 3u], batch[at + 2u] + batch[at + 1u]);
}

// Four f32 to f16, to nearest even; how pack2x16float rounds is left to the implementation.
fn half_bits(x: vec4<f32>) -> vec4<u32> {
  let bits = bitcast<vec4<u32>>(x);
  let magnitude = bits & vec4<u32>(0x7fffffffu);
  let normal = (magnitude + vec4<u32>(0xfffu) + ((magnitude >> vec4<u32>(13u)) & vec4<u32>(1u)) -
                vec4<u32>(112u << 23u)) >> vec4<u32>(13u);
  let tiny = bitcast<vec4<u32>>(bitcast<vec4<f32>>(magnitude) + 0.5) - vec4<u32>(0x3f000000u);
  var half = select(normal, tiny, magnitude < vec4<u32>(0x38800000u));
  half = select(half, vec4<u32>(0x7c00u), magnitude >= vec4<u32>(0x47800000u));
  half = select(half, vec4<u32>(0x7e00u), magnitude > vec4<u32>(0x7f800000u));
  return half | ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u));
}

fn packed_halves(x: vec4<f32>) -> vec2<u32> {
  let bits = half_bits(x);
  return bits.xz | (bits.yw << vec2<u32>(16u));
}

fn rounded(x: vec4<f32>) -> vec4<f32> {
  if (kvEncoding == 0u) {
    return x;
  }
  let words = packed_halves(x);
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

fn key_slot(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.kStride + head * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, k[at], left > 0u), select(0.0, k[at + 1u], left > 1u),
                   select(0.0, k[at + 2u], left > 2u), select(0.0, k[at + 3u], left > 3u));
}

fn value_slot(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.vStride + head * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, v[at], left > 0u), select(0.0, v[at + 1u], left > 1u),
                   select(0.0, v[at + 2u], left > 2u), select(0.0, v[at + 3u], left > 3u));
}

fn cache_at(segment: Segment, head: u32, position: u32, values: u32) -> u32 {
  let page = batch[segment.pages_at + position / params.pagePositions];
  let in_page = (head * 2u + values) * params.pagePositions + position % params.pagePositions;
  return page * params.pageStride + in_page * head_units();
}

fn from_cache(at: u32) -> Eight {
  let w = kv[at];
  if (kvEncoding == 0u) {
    return Eight(bitcast<vec4<f32>>(w), vec4<f32>(0.0));
  }
  return Eight(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)),
               vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
}

fn to_cache(at: u32, x: Eight) {
  if (kvEncoding == 0u) {
    kv[at] = bitcast<vec4<u32>>(x.low);
  } else {
    kv[at] = vec4<u32>(packed_halves(x.low), packed_halves(x.high));
  }
}

fn key_unit(segment: Segment, head: u32, position: u32, unit: u32) -> Eight {
  if (position < segment.first_position) {
    return from_cache(cache_at(segment, head, position, 0u) + unit);
  }
  let row = segment.first_row + position - segment.first_position;
  return Eight(rounded(key_slot(row, head, unit * unitSize)), rounded(key_slot(row, head, unit * unitSize + 4u)));
}

fn value_unit(segment: Segment, head: u32, position: u32, unit: u32) -> Eight {
  if (position < segment.first_position) {
    return from_cache(cache_at(segment, head, position, 1u) + unit);
  }
  let row = segment.first_row + position - segment.first_position;
  return Eight(rounded(value_slot(row, head, unit * unitSize)), rounded(value_slot(row, head, unit * unitSize + 4u)));
}

fn write_position(segment: Segment, row: u32, head: u32, position: u32, thread: u32) {
  for (var unit = thread; unit < head_units(); unit += kThreads) {
    to_cache(cache_at(segment, head, position, 0u) + unit,
             Eight(key_slot(row, head, unit * unitSize), key_slot(row, head, unit * unitSize + 4u)));
    to_cache(cache_at(segment, head, position, 1u) + unit,
             Eight(value_slot(row, head, unit * unitSize), value_slot(row, head, unit * unitSize + 4u)));
  }
}

fn query_part(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.srcStride + head * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, src[at], left > 0u), select(0.0, src[at + 1u], left > 1u),
                   select(0.0, src[at + 2u], left > 2u), select(0.0, src[at + 3u], left > 3u));
}

fn score(segment: Segment, head: u32, position: u32) -> f32 {
  var sum = 0.0;
  for (var unit = 0u; unit < head_units(); unit++) {
    let key = key_unit(segment, head, position, unit);
    sum += dot(query[unit * (unitSize / 4u)], key.low);
    if (unitSize == 8u) {
      sum += dot(query[unit * 2u + 1u], key.high);
    }
  }
  sum *= params.scale;
  if (params.softcap != 0.0) {
    sum = params.softcap * tanh(clamp(sum / params.softcap, -10.0, 10.0));
  }
  return sum;
}

fn largest_of_all(value: f32, thread: u32) -> f32 {
  reduced[thread] = value;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      reduced[thread] = max(reduced[thread], reduced[thread + half]);
    }
    workgroupBarrier();
  }
  let largest = reduced[0];
  workgroupBarrier();
  return largest;
}

fn sum_of_all(value: f32, thread: u32) -> f32 {
  reduced[thread] = value;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      reduced[thread] += reduced[thread + half];
    }
    workgroupBarrier();
  }
  let sum = reduced[0];
  workgroupBarrier();
  return sum;
}

// entry attention(params, batch, src, k, v, kv, dst) dispatch(heads, rows)
@compute @workgroup_size(128)
fn attention(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let row = group.y;
  let kv_head = head / (params.heads / params.kvHeads);
  let segment = segment_of(row);
  let position = segment.first_position + row - segment.first_row;
  if (head % (params.heads / params.kvHeads) == 0u) {
    write_position(segment, row, kv_head, position, thread);
  }
  for (var unit = thread; unit < head_units(); unit += kThreads) {
    query[unit * (unitSize / 4u)] = query_part(row, head, unit * unitSize);
    if (unitSize == 8u) {
      query[unit * 2u + 1u] = query_part(row, head, unit * 8u + 4u);
    }
  }
  workgroupBarrier();
  var begin = 0u;
  if (params.window != 0u && position + 1u > params.window) {
    begin = position + 1u - params.window;
  }
  var end = position + 1u;
  if (params.causal == 0u) {
    end = segment.end;
    if (params.window != 0u && end - position > params.window) {
      end = position + params.window;
    }
  }

  let units = head_units();
  let lanes = kThreads / units;  // threads that share a unit of the values
  let unit = thread % units;
  let lane = thread / units;
  var most = kLowest;
  var total = 0.0;
  var sum = Eight(vec4<f32>(0.0), vec4<f32>(0.0));
  for (var first = begin; first < end; first += kThreads) {
    var mine = kLowest;
    if (first + thread < end) {
      mine = score(segment, kv_head, first + thread);
    }
    let largest = max(most, largest_of_all(mine, thread));
    let kept = exp(most - largest);
    let e = select(0.0, exp(mine - largest), first + thread < end);
    weights[thread] = e;
    total = total * kept + sum_of_all(e, thread);
    most = largest;
    sum.low *= kept;
    sum.high *= kept;
    if (lane < lanes) {
      let last = min(end - first, kThreads);
      for (var i = lane; i < last; i += lanes) {
        let value = value_unit(segment, kv_head, first + i, unit);
        sum.low += weights[i] * value.low;
        sum.high += weights[i] * value.high;
      }
    }
    workgroupBarrier();
  }

  sums[thread] = sum;
  workgroupBarrier();
  for (var d = thread; d < params.headDim; d += kThreads) {
    var value = 0.0;
    for (var l = 0u; l < lanes; l++) {
      let part = sums[l * units + d / unitSize];
      let i = d % unitSize;
      value += select(part.high[i % 4u], part.low[i % 4u], i < 4u);
    }
    dst[row * params.dstStride + head * params.headDim + d] = value / total;
  }
}
