// Rotary position embedding and attention over a paged KV cache.
//
// Prefill: a first pass writes the batch's keys and values to the cache and its queries, times scale, to scratch; then a
// workgroup takes 32 queries of one head and 128 of its columns, and walks tiles of 64 keys through workgroup memory
// (online softmax; Milakov and Gimelshein 2018). Decode: a workgroup takes one query of one head and 256 positions;
// where a row sees several such chunks, a second pass combines them. Tiles and chunks begin at multiples of their size,
// so a row's result depends neither on how the text was cut into batches nor on the rows beside it.
//
// rope_prefill and rope_decode do the same for rows that hold q, k and v side by side, q and k not yet rotated.
//
// A page holds, for each key/value head, the keys of its positions and then their values, each position's in units of
// 16 bytes: 4 f32 or 8 f16, zeros behind the last.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read> inverseFrequencies: array<f32>;
@group(0) @binding(5) var<storage, read_write> kv: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> scratch: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> dst: array<f32>;
@group(0) @binding(8) var<uniform> params: Params;

struct Params {
  heads: u32,
  kvHeads: u32,
  headDim: u32,
  scale: f32,
  window: u32,
  softcap: f32,
  causal: u32,
  style: u32,  // of rotation: 0 pairs (i, i + F), F the number of frequencies; 1 pairs (2 i, 2 i + 1)
  attentionScale: f32,
  srcCols: u32,
  srcStride: u32,
  kStride: u32,
  vStride: u32,
  dstStride: u32,
  rowsAt: u32,
  pagePositions: u32,
  pageStride: u32,  // in units of 16 bytes
}

override kvEncoding: u32;                      // 0 f32, 1 f16

const kLowest = -3.4e38;
override unitSize: u32 = 4u + 4u * kvEncoding;  // elements of 16 bytes

// As many numbers as a unit holds; of f32 only `low`.
struct Eight {
  low: vec4<f32>,
  high: vec4<f32>,
}

struct Segment {
  first_row: u32,
  rows: u32,
  first_position: u32,
  pages_at: u32,
}

struct Range {
  begin: u32,
  end: u32,
}

// Units of a head's columns in the cache, and groups of four of them elsewhere.
fn head_units() -> u32 {
  return (params.headDim + unitSize - 1u) / unitSize;
}

fn head_quads() -> u32 {
  return (params.headDim + 3u) / 4u;
}

fn segment_at(index: u32) -> Segment {
  let at = batch[5] + index * 16u;
  return Segment(batch[at], batch[at + 1u], batch[at + 2u], batch[at + 3u]);
}

fn segment_of(row: u32) -> Segment {
  return segment_at(batch[batch[4] + row]);
}

// The positions that the query at `position` sees.
fn visible(segment: Segment, position: u32) -> Range {
  var range = Range(0u, position + 1u);
  if (params.window != 0u && position + 1u > params.window) {
    range.begin = position + 1u - params.window;
  }
  if (params.causal == 0u) {
    range.end = segment.first_position + segment.rows;
    if (params.window != 0u && range.end - position > params.window) {
      range.end = position + params.window;
    }
  }
  return range;
}

fn capped(score: f32) -> f32 {
  if (params.softcap == 0.0) {
    return score;
  }
  return params.softcap * tanh(clamp(score / params.softcap, -10.0, 10.0));
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

fn packed_unit(x: Eight) -> vec4<u32> {
  if (kvEncoding == 0u) {
    return bitcast<vec4<u32>>(x.low);
  }
  let low = half_bits(x.low);
  let high = half_bits(x.high);
  return vec4<u32>(low.xz | (low.yw << vec2<u32>(16u)), high.xz | (high.yw << vec2<u32>(16u)));
}

fn unpacked_unit(w: vec4<u32>) -> Eight {
  if (kvEncoding == 0u) {
    return Eight(bitcast<vec4<f32>>(w), vec4<f32>(0.0));
  }
  return Eight(vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y)),
               vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w)));
}

// Where the key of a position begins in the cache; its value is value_distance() behind.
fn key_place(segment: Segment, kv_head: u32, position: u32) -> u32 {
  let page = batch[segment.pages_at + position / params.pagePositions];
  return page * params.pageStride +
         (kv_head * 2u * params.pagePositions + position % params.pagePositions) * head_units();
}

fn value_distance() -> u32 {
  return params.pagePositions * head_units();
}

// Columns 4 * quad … of the key or value that begins at `place`.
fn cached_quad(place: u32, quad: u32) -> vec4<f32> {
  if (kvEncoding == 0u) {
    return bitcast<vec4<f32>>(kv[place + quad]);
  }
  let unit = kv[place + quad / 2u];
  let words = select(unit.xy, unit.zw, quad % 2u == 1u);
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}

// Rotation. Sine and cosine are computed here: WGSL promises only an absolute error of 2^-11 for its own. The nearest
// multiple of π/2 is taken off in four parts whose products with the quotient are exact for angles below 2^17, then
// Taylor series to the 9th and 10th power: error below 4e-7.
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

// Column d of the head that begins at column `head` of a row of src, rotated by the row's position.
fn rotated(row: u32, head: u32, d: u32) -> f32 {
  let pairs = arrayLength(&inverseFrequencies);
  let begin = row * params.srcStride + head;
  let x = src[begin + d];
  if (d >= 2u * pairs) {
    return x;
  }
  var pair = d % pairs;
  var is_first = d < pairs;
  var other = select(d - pairs, d + pairs, is_first);
  if (params.style == 1u) {
    pair = d / 2u;
    is_first = d % 2u == 0u;
    other = d ^ 1u;
  }
  let turn = sine_cosine(f32(batch[batch[2] + row]) * inverseFrequencies[pair]) * params.attentionScale;
  let y = src[begin + other];
  return x * turn.y + select(y, -y, is_first) * turn.x;
}

// entry rope(params, batch, src, inverseFrequencies, dst) dispatch(srcCols / 64, rows)
@compute @workgroup_size(64)
fn rope(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = group.x * 64u + thread;
  if (column < params.srcCols) {
    let d = column % params.headDim;
    dst[group.y * params.dstStride + column] = rotated(group.y, column - d, d);
  }
}

// What a head's columns are before they go to scratch or cache: four of them from d on, zeros behind the last. The
// first three read the slots of attention, the others a row of q, k and v side by side.
fn query_of(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.srcStride + head * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, src[at], left > 0u), select(0.0, src[at + 1u], left > 1u),
                   select(0.0, src[at + 2u], left > 2u), select(0.0, src[at + 3u], left > 3u)) * params.scale;
}

fn key_of(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.kStride + head * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, k[at], left > 0u), select(0.0, k[at + 1u], left > 1u),
                   select(0.0, k[at + 2u], left > 2u), select(0.0, k[at + 3u], left > 3u));
}

fn value_of(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.vStride + head * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, v[at], left > 0u), select(0.0, v[at + 1u], left > 1u),
                   select(0.0, v[at + 2u], left > 2u), select(0.0, v[at + 3u], left > 3u));
}

fn rotated_quad(row: u32, head: u32, d: u32) -> vec4<f32> {
  var out = vec4<f32>(0.0);
  for (var i = 0u; i < 4u && d + i < params.headDim; i++) {
    out[i] = rotated(row, head * params.headDim, d + i);
  }
  return out;
}

fn rope_query_of(row: u32, head: u32, d: u32) -> vec4<f32> {
  return rotated_quad(row, head, d) * params.scale;
}

fn rope_key_of(row: u32, head: u32, d: u32) -> vec4<f32> {
  return rotated_quad(row, params.heads + head, d);
}

fn rope_value_of(row: u32, head: u32, d: u32) -> vec4<f32> {
  let at = row * params.srcStride + (params.heads + params.kvHeads + head) * params.headDim + d;
  let left = params.headDim - min(d, params.headDim);
  return vec4<f32>(select(0.0, src[at], left > 0u), select(0.0, src[at + 1u], left > 1u),
                   select(0.0, src[at + 2u], left > 2u), select(0.0, src[at + 3u], left > 3u));
}

// Prefill's first pass: a workgroup owns a head of a row.

fn query_place(row: u32, head: u32) -> u32 {
  return (row * params.heads + head) * head_quads();
}

fn cache_place(row: u32, kv_head: u32) -> u32 {
  let segment = segment_of(row);
  return key_place(segment, kv_head, segment.first_position + row - segment.first_row);
}

// entry prefill(params, batch, src, k, v, kv, scratch) dispatch(heads, rows) scratch(rows, heads, headDim / 4, 16)
// then tiles(params, batch, kv, scratch, dst) dispatch(heads, rows / 32 + sequences, headDim / 128)
@compute @workgroup_size(64)
fn prefill(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let row = group.y;
  for (var quad = thread; quad < head_quads(); quad += 64u) {
    scratch[query_place(row, head) + quad] = query_of(row, head, quad * 4u);
  }
  if (head >= params.kvHeads) {
    return;
  }
  let place = cache_place(row, head);
  for (var unit = thread; unit < head_units(); unit += 64u) {
    let d = unit * unitSize;
    kv[place + unit] = packed_unit(Eight(key_of(row, head, d), key_of(row, head, d + 4u)));
    kv[place + value_distance() + unit] = packed_unit(Eight(value_of(row, head, d), value_of(row, head, d + 4u)));
  }
}

// entry rope_prefill(params, batch, src, inverseFrequencies, kv, scratch) dispatch(heads, rows) scratch(rows, heads, headDim / 4, 16)
// then tiles(params, batch, kv, scratch, dst) dispatch(heads, rows / 32 + sequences, headDim / 128)
@compute @workgroup_size(64)
fn rope_prefill(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let row = group.y;
  for (var quad = thread; quad < head_quads(); quad += 64u) {
    scratch[query_place(row, head) + quad] = rope_query_of(row, head, quad * 4u);
  }
  if (head >= params.kvHeads) {
    return;
  }
  let place = cache_place(row, head);
  for (var unit = thread; unit < head_units(); unit += 64u) {
    let d = unit * unitSize;
    kv[place + unit] = packed_unit(Eight(rope_key_of(row, head, d), rope_key_of(row, head, d + 4u)));
    kv[place + value_distance() + unit] =
      packed_unit(Eight(rope_value_of(row, head, d), rope_value_of(row, head, d + 4u)));
  }
}

// Prefill's second pass. Of 128 threads, thread (ty, tx) scores queries 4 ty … + 3 against keys tx, tx + 16, … + 48, and
// owns of the result the same queries' columns 4 tx … + 3 and 64 more behind. Strides of 33, 65 and 9 spread columns
// over the banks of the memory.
const kQueries = 32u;
const kKeys = 64u;
const kDepth = 8u;                              // quads of queries and keys at a time
var<workgroup> query_tile: array<vec4<f32>, 264>;  // [quad][query]
var<workgroup> tile: array<vec4<f32>, 520>;        // [quad][key], then 16 values of 32 quads each
var<workgroup> shares: array<vec4<f32>, 576>;      // [key]: of four queries each
var<workgroup> partial: array<f32, 544>;           // [query]: of 16 threads each
var<workgroup> places: array<u32, 64>;             // of keys in the cache
var<workgroup> most: array<f32, 32>;               // of a query's scores so far
var<workgroup> kept: array<f32, 32>;               // how much of what was summed stays
var<workgroup> total: array<f32, 32>;

struct Tile {
  segment: Segment,
  first: u32,  // its first query's row in the segment
  count: u32,
}

// Tiles are numbered through all segments; count is 0 behind the last.
fn tile_at(index: u32) -> Tile {
  var left = index;
  for (var s = 0u; s < batch[1]; s++) {
    let segment = segment_at(s);
    let tiles = (segment.rows + kQueries - 1u) / kQueries;
    if (left < tiles) {
      return Tile(segment, left * kQueries, min(kQueries, segment.rows - left * kQueries));
    }
    left -= tiles;
  }
  return Tile(Segment(0u, 0u, 0u, 0u), 0u, 0u);
}

fn load_query_tile(row: u32, count: u32, head: u32, quad: u32, thread: u32) {
  for (var i = thread; i < kQueries * kDepth; i += 128u) {
    let query = i / kDepth;
    let at = i % kDepth;
    var values = vec4<f32>(0.0);
    if (query < count && quad + at < head_quads()) {
      values = scratch[query_place(row + query, head) + quad + at];
    }
    query_tile[at * 33u + query] = values;
  }
}

fn load_key_tile(keys: u32, quad: u32, thread: u32) {
  for (var i = thread; i < kKeys * kDepth; i += 128u) {
    let key = i / kDepth;
    let at = i % kDepth;
    var values = vec4<f32>(0.0);
    if (key < keys && quad + at < head_quads()) {
      values = cached_quad(places[key], quad + at);
    }
    tile[at * 65u + key] = values;
  }
}

fn load_value_tile(first: u32, keys: u32, quad: u32, thread: u32) {
  for (var i = thread; i < 512u; i += 128u) {
    let key = first + i / 32u;
    let at = i % 32u;
    var values = vec4<f32>(0.0);
    if (key < keys && quad + at < head_quads()) {
      values = cached_quad(places[key] + value_distance(), quad + at);
    }
    tile[i] = values;
  }
}

fn hidden(range: Range, keys: vec4<u32>) -> vec4<bool> {
  return (keys < vec4<u32>(range.begin)) | (keys >= vec4<u32>(range.end));
}

fn masked(scores: vec4<f32>, range: Range, keys: vec4<u32>) -> vec4<f32> {
  let c = vec4<f32>(capped(scores.x), capped(scores.y), capped(scores.z), capped(scores.w));
  return select(c, vec4<f32>(kLowest), hidden(range, keys));
}

fn largest_of(x: vec4<f32>) -> f32 {
  return max(max(x.x, x.y), max(x.z, x.w));
}

fn exponentials(scores: vec4<f32>, largest: f32, range: Range, keys: vec4<u32>) -> vec4<f32> {
  return select(exp(scores - largest), vec4<f32>(0.0), hidden(range, keys));
}

fn write_quad(row: u32, head: u32, d: u32, values: vec4<f32>) {
  let at = row * params.dstStride + head * params.headDim + d;
  for (var i = 0u; i < 4u && d + i < params.headDim; i++) {
    dst[at + i] = values[i];
  }
}

@compute @workgroup_size(128)
fn tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let kv_head = head / (params.heads / params.kvHeads);
  let part = tile_at(group.y);
  if (part.count == 0u) {
    return;
  }
  let segment = part.segment;
  let row = segment.first_row + part.first;
  let position = segment.first_position + part.first;
  let begin = visible(segment, position).begin;
  let end = visible(segment, position + part.count - 1u).end;
  let tx = thread % 16u;
  let ty = thread / 16u;
  let query = ty * 4u;
  let range0 = visible(segment, position + query);
  let range1 = visible(segment, position + query + 1u);
  let range2 = visible(segment, position + query + 2u);
  let range3 = visible(segment, position + query + 3u);
  if (thread < kQueries) {
    most[thread] = kLowest;
    total[thread] = 0.0;
  }
  var a0 = vec4<f32>(0.0);
  var a1 = a0;
  var a2 = a0;
  var a3 = a0;
  var b0 = a0;
  var b1 = a0;
  var b2 = a0;
  var b3 = a0;
  for (var base = begin / kKeys * kKeys; base < end; base += kKeys) {
    let keys = min(kKeys, end - base);
    if (thread < keys) {
      places[thread] = key_place(segment, kv_head, base + thread);
    }
    workgroupBarrier();
    var s0 = vec4<f32>(0.0);
    var s1 = s0;
    var s2 = s0;
    var s3 = s0;
    for (var quad = 0u; quad < head_quads(); quad += kDepth) {
      load_query_tile(row, part.count, head, quad, thread);
      load_key_tile(keys, quad, thread);
      workgroupBarrier();
      for (var i = 0u; i < kDepth; i++) {
        let k0 = tile[i * 65u + tx];
        let k1 = tile[i * 65u + tx + 16u];
        let k2 = tile[i * 65u + tx + 32u];
        let k3 = tile[i * 65u + tx + 48u];
        let q0 = query_tile[i * 33u + query];
        s0 += vec4<f32>(dot(q0, k0), dot(q0, k1), dot(q0, k2), dot(q0, k3));
        let q1 = query_tile[i * 33u + query + 1u];
        s1 += vec4<f32>(dot(q1, k0), dot(q1, k1), dot(q1, k2), dot(q1, k3));
        let q2 = query_tile[i * 33u + query + 2u];
        s2 += vec4<f32>(dot(q2, k0), dot(q2, k1), dot(q2, k2), dot(q2, k3));
        let q3 = query_tile[i * 33u + query + 3u];
        s3 += vec4<f32>(dot(q3, k0), dot(q3, k1), dot(q3, k2), dot(q3, k3));
      }
      workgroupBarrier();
    }

    let at = vec4<u32>(base + tx) + vec4<u32>(0u, 16u, 32u, 48u);
    s0 = masked(s0, range0, at);
    s1 = masked(s1, range1, at);
    s2 = masked(s2, range2, at);
    s3 = masked(s3, range3, at);
    partial[query * 17u + tx] = largest_of(s0);
    partial[(query + 1u) * 17u + tx] = largest_of(s1);
    partial[(query + 2u) * 17u + tx] = largest_of(s2);
    partial[(query + 3u) * 17u + tx] = largest_of(s3);
    workgroupBarrier();
    if (thread < kQueries) {
      var largest = most[thread];
      for (var i = 0u; i < 16u; i++) {
        largest = max(largest, partial[thread * 17u + i]);
      }
      kept[thread] = exp(most[thread] - largest);
      most[thread] = largest;
    }
    workgroupBarrier();
    s0 = exponentials(s0, most[query], range0, at);
    s1 = exponentials(s1, most[query + 1u], range1, at);
    s2 = exponentials(s2, most[query + 2u], range2, at);
    s3 = exponentials(s3, most[query + 3u], range3, at);
    shares[tx * 9u + ty] = vec4<f32>(s0.x, s1.x, s2.x, s3.x);
    shares[(tx + 16u) * 9u + ty] = vec4<f32>(s0.y, s1.y, s2.y, s3.y);
    shares[(tx + 32u) * 9u + ty] = vec4<f32>(s0.z, s1.z, s2.z, s3.z);
    shares[(tx + 48u) * 9u + ty] = vec4<f32>(s0.w, s1.w, s2.w, s3.w);
    partial[query * 17u + tx] = (s0.x + s0.y) + (s0.z + s0.w);
    partial[(query + 1u) * 17u + tx] = (s1.x + s1.y) + (s1.z + s1.w);
    partial[(query + 2u) * 17u + tx] = (s2.x + s2.y) + (s2.z + s2.w);
    partial[(query + 3u) * 17u + tx] = (s3.x + s3.y) + (s3.z + s3.w);
    a0 *= kept[query];
    a1 *= kept[query + 1u];
    a2 *= kept[query + 2u];
    a3 *= kept[query + 3u];
    b0 *= kept[query];
    b1 *= kept[query + 1u];
    b2 *= kept[query + 2u];
    b3 *= kept[query + 3u];
    workgroupBarrier();
    if (thread < kQueries) {
      var sum = total[thread] * kept[thread];
      for (var i = 0u; i < 16u; i++) {
        sum += partial[thread * 17u + i];
      }
      total[thread] = sum;
    }
    for (var first = 0u; first < keys; first += 16u) {
      load_value_tile(first, keys, group.z * 32u, thread);
      workgroupBarrier();
      for (var i = 0u; i < 16u; i++) {
        let share = shares[(first + i) * 9u + ty];
        let x = tile[i * 32u + tx];
        let y = tile[i * 32u + tx + 16u];
        a0 += share.x * x;
        a1 += share.y * x;
        a2 += share.z * x;
        a3 += share.w * x;
        b0 += share.x * y;
        b1 += share.y * y;
        b2 += share.z * y;
        b3 += share.w * y;
      }
      workgroupBarrier();
    }
  }

  let column = group.z * 128u + tx * 4u;
  if (query < part.count) {
    write_quad(row + query, head, column, a0 / total[query]);
    write_quad(row + query, head, column + 64u, b0 / total[query]);
  }
  if (query + 1u < part.count) {
    write_quad(row + query + 1u, head, column, a1 / total[query + 1u]);
    write_quad(row + query + 1u, head, column + 64u, b1 / total[query + 1u]);
  }
  if (query + 2u < part.count) {
    write_quad(row + query + 2u, head, column, a2 / total[query + 2u]);
    write_quad(row + query + 2u, head, column + 64u, b2 / total[query + 2u]);
  }
  if (query + 3u < part.count) {
    write_quad(row + query + 3u, head, column, a3 / total[query + 3u]);
    write_quad(row + query + 3u, head, column + 64u, b3 / total[query + 3u]);
  }
}

// Decode: each row is a sequence's only one, so all but its own position are in the cache. Each of 256 threads scores a
// position of the chunk, then the exponentials weigh the values.
const kChunk = 256u;
var<workgroup> decode_query: array<vec4<f32>, 128>;  // heads of up to 512 columns
var<workgroup> own_key: array<vec4<u32>, 128>;       // as the cache will hold it
var<workgroup> own_value: array<vec4<u32>, 128>;
var<workgroup> weights: array<f32, 256>;
var<workgroup> reduced: array<f32, 256>;
var<workgroup> sums: array<Eight, 256>;

fn largest_of_all(value: f32, thread: u32) -> f32 {
  reduced[thread] = value;
  workgroupBarrier();
  for (var half = kChunk / 2u; half > 0u; half /= 2u) {
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
  for (var half = kChunk / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      reduced[thread] += reduced[thread + half];
    }
    workgroupBarrier();
  }
  let sum = reduced[0];
  workgroupBarrier();
  return sum;
}

fn product_with(w: vec4<u32>, unit: u32) -> f32 {
  let key = unpacked_unit(w);
  if (unitSize == 4u) {
    return dot(decode_query[unit], key.low);
  }
  return dot(decode_query[unit * 2u], key.low) + dot(decode_query[unit * 2u + 1u], key.high);
}

// What a chunk of a row comes to: sums of values, then the largest score and the sum of exponentials. Chunks of all
// rows lie one after another.
fn chunk_place(chunk: u32, row: u32, head: u32) -> u32 {
  return ((chunk * batch[params.rowsAt] + row) * params.heads + head) * (head_quads() + 1u);
}

fn decode_chunk(row: u32, head: u32, chunk: u32, thread: u32) {
  let kv_head = head / (params.heads / params.kvHeads);
  let segment = segment_of(row);
  let position = segment.first_position;
  let range = visible(segment, position);
  let first = max(chunk * kChunk, range.begin);
  let end = min(chunk * kChunk + kChunk, range.end);
  let units = head_units();
  let own_place = key_place(segment, kv_head, position);
  if (head % (params.heads / params.kvHeads) == 0u && position / kChunk == chunk) {
    for (var unit = thread; unit < units; unit += kChunk) {
      kv[own_place + unit] = own_key[unit];
      kv[own_place + value_distance() + unit] = own_value[unit];
    }
  }

  let at = chunk * kChunk + thread;
  let seen = at >= first && at < end;
  var score = kLowest;
  if (seen) {
    var sum = 0.0;
    if (at == position) {
      for (var unit = 0u; unit < units; unit++) {
        sum += product_with(own_key[unit], unit);
      }
    } else {
      let place = key_place(segment, kv_head, at);
      for (var unit = 0u; unit < units; unit++) {
        sum += product_with(kv[place + unit], unit);
      }
    }
    score = capped(sum);
  }
  let largest = largest_of_all(score, thread);
  let share = select(0.0, exp(score - largest), seen);
  weights[thread] = share;
  let whole = sum_of_all(share, thread);

  let lanes = kChunk / units;  // threads that share a unit of the values
  let unit = thread % units;
  let lane = thread / units;
  var sum = Eight(vec4<f32>(0.0), vec4<f32>(0.0));
  if (lane < lanes) {
    for (var i = first + lane; i < end; i += lanes) {
      var w = own_value[unit];
      if (i != position) {
        w = kv[key_place(segment, kv_head, i) + value_distance() + unit];
      }
      let value = unpacked_unit(w);
      sum.low += weights[i - chunk * kChunk] * value.low;
      sum.high += weights[i - chunk * kChunk] * value.high;
    }
  }
  sums[thread] = sum;
  workgroupBarrier();

  let only = range.begin / kChunk == (range.end - 1u) / kChunk;
  let place = chunk_place(chunk, row, head);
  for (var quad = thread; quad < head_quads(); quad += kChunk) {
    var values = vec4<f32>(0.0);
    for (var l = 0u; l < lanes; l++) {
      let part = sums[l * units + quad * 4u / unitSize];
      values += select(part.low, part.high, unitSize == 8u && quad % 2u == 1u);
    }
    if (only) {
      write_quad(row, head, quad * 4u, values / whole);
    } else {
      scratch[place + quad] = values;
    }
  }
  if (!only && thread == 0u) {
    scratch[place + head_quads()] = vec4<f32>(largest, whole, 0.0, 0.0);
  }
}

// The chunks that a row sees.
fn chunks_of(row: u32) -> Range {
  let segment = segment_of(row);
  let range = visible(segment, segment.first_position);
  return Range(range.begin / kChunk, (range.end - 1u) / kChunk + 1u);
}

// entry decode(params, batch, src, k, v, kv, scratch, dst) dispatch(heads, end / 256, rows) scratch(sequences, heads, context / 256, headDim / 4 + 1, 16) single
// then combine(params, batch, scratch, dst) dispatch(heads, rows) when end > 256
@compute @workgroup_size(256)
fn decode(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let row = group.z;
  let chunks = chunks_of(row);
  if (group.y < chunks.begin || group.y >= chunks.end) {
    return;
  }
  let kv_head = head / (params.heads / params.kvHeads);
  for (var quad = thread; quad < head_units() * unitSize / 4u; quad += kChunk) {
    decode_query[quad] = query_of(row, head, quad * 4u);
  }
  for (var unit = thread; unit < head_units(); unit += kChunk) {
    let d = unit * unitSize;
    own_key[unit] = packed_unit(Eight(key_of(row, kv_head, d), key_of(row, kv_head, d + 4u)));
    own_value[unit] = packed_unit(Eight(value_of(row, kv_head, d), value_of(row, kv_head, d + 4u)));
  }
  workgroupBarrier();
  decode_chunk(row, head, group.y, thread);
}

// entry rope_decode(params, batch, src, inverseFrequencies, kv, scratch, dst) dispatch(heads, end / 256, rows) scratch(sequences, heads, context / 256, headDim / 4 + 1, 16) single
// then combine(params, batch, scratch, dst) dispatch(heads, rows) when end > 256
@compute @workgroup_size(256)
fn rope_decode(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let row = group.z;
  let chunks = chunks_of(row);
  if (group.y < chunks.begin || group.y >= chunks.end) {
    return;
  }
  let kv_head = head / (params.heads / params.kvHeads);
  // Threads from 128 on take the key, so that both rotate at once.
  for (var quad = thread; quad < head_units() * unitSize / 4u; quad += 128u) {
    if (thread < 128u) {
      decode_query[quad] = rope_query_of(row, head, quad * 4u);
    }
  }
  for (var unit = thread % 128u; unit < head_units(); unit += 128u) {
    let d = unit * unitSize;
    if (thread >= 128u) {
      own_key[unit] = packed_unit(Eight(rope_key_of(row, kv_head, d), rope_key_of(row, kv_head, d + 4u)));
    } else {
      own_value[unit] = packed_unit(Eight(rope_value_of(row, kv_head, d), rope_value_of(row, kv_head, d + 4u)));
    }
  }
  workgroupBarrier();
  decode_chunk(row, head, group.y, thread);
}

@compute @workgroup_size(64)
fn combine(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let row = group.y;
  let chunks = chunks_of(row);
  if (chunks.end - chunks.begin == 1u) {
    return;
  }
  let facts = head_quads();
  var largest = kLowest;
  for (var chunk = chunks.begin; chunk < chunks.end; chunk++) {
    largest = max(largest, scratch[chunk_place(chunk, row, head) + facts].x);
  }
  for (var quad = thread; quad < head_quads(); quad += 64u) {
    var values = vec4<f32>(0.0);
    var whole = 0.0;
    for (var chunk = chunks.begin; chunk < chunks.end; chunk++) {
      let place = chunk_place(chunk, row, head);
      let share = exp(scratch[place + facts].x - largest);
      values += share * scratch[place + quad];
      whole += share * scratch[place + facts].y;
    }
    write_quad(row, head, quad * 4u, values / whole);
  }
}
