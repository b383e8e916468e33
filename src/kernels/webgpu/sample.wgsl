// The next token of each sequence; a workgroup a sequence. Repetition penalty; then at temperature 0 the largest logit,
// the lowest id among equals; otherwise exp((logit - largest) / temperature), top-k, top-p and min-p as thresholds on
// the logit (equal logits stay or go together), and one draw by Philox 4x32-10 of (seed, sequence, position) over what
// is left in order of ids. 4294967295 if a logit is NaN or none is finite.
//
// Thresholds are found by halving the range of an ordered integer image of the logits: 32 passes, no sorting.

@group(0) @binding(0) var<storage, read> batch: array<u32>;
@group(0) @binding(1) var<storage, read> src: array<f32>;
@group(0) @binding(2) var<storage, read_write> dst: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

struct Params {
  srcCols: u32,
  srcStride: u32,
  dstStride: u32,
}

const kThreads = 256u;
const kNoToken = 0xffffffffu;
var<workgroup> numbers: array<f32, 256>;
var<workgroup> integers: array<u32, 256>;

struct Parameters {
  first: u32,  // of its logits in src
  history_at: u32,
  history_count: u32,
  temperature: f32,
  penalty: f32,
}

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn sum_of_all(value: f32, thread: u32) -> f32 {
  numbers[thread] = value;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      numbers[thread] += numbers[thread + half];
    }
    workgroupBarrier();
  }
  let sum = workgroupUniformLoad(&numbers[0]);
  return sum;
}

fn count_of_all(value: u32, thread: u32) -> u32 {
  integers[thread] = value;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      integers[thread] += integers[thread + half];
    }
    workgroupBarrier();
  }
  return workgroupUniformLoad(&integers[0]);
}

// The larger first, the lower id among equals.
fn largest_of_all(value: f32, id: u32, thread: u32) {
  numbers[thread] = value;
  integers[thread] = id;
  workgroupBarrier();
  for (var half = kThreads / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      let x = numbers[thread + half];
      let i = integers[thread + half];
      if (x > numbers[thread] || (x == numbers[thread] && i < integers[thread])) {
        numbers[thread] = x;
        integers[thread] = i;
      }
    }
    workgroupBarrier();
  }
}

fn logit(p: Parameters, id: u32) -> f32 {
  let x = src[p.first + id];
  if (p.penalty != 1.0) {
    for (var i = 0u; i < p.history_count; i++) {
      if (batch[p.history_at + i] == id) {
        return select(x * p.penalty, x / p.penalty, x > 0.0);
      }
    }
  }
  return x;
}

// Integers in the order of the numbers.
fn ordered(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn mass(p: Parameters, x: f32, largest: f32) -> f32 {
  return exp((x - largest) / p.temperature);
}

// The largest threshold that at least `count` logits reach.
fn count_threshold(p: Parameters, count: u32, thread: u32) -> u32 {
  var low = 0u;
  for (var bit = 0x80000000u; bit != 0u; bit >>= 1u) {
    var mine = 0u;
    for (var id = thread; id < params.srcCols; id += kThreads) {
      if (ordered(logit(p, id)) >= (low | bit)) {
        mine++;
      }
    }
    if (count_of_all(mine, thread) >= count) {
      low |= bit;
    }
  }
  return low;
}

// The sum of what reaches a threshold.
fn mass_from(p: Parameters, threshold: u32, largest: f32, thread: u32) -> f32 {
  var mine = 0.0;
  for (var id = thread; id < params.srcCols; id += kThreads) {
    let x = logit(p, id);
    if (ordered(x) >= threshold) {
      mine += mass(p, x, largest);
    }
  }
  return sum_of_all(mine, thread);
}

// The largest threshold above which enough mass lies; never below `least`.
fn mass_threshold(p: Parameters, least: u32, enough: f32, largest: f32, thread: u32) -> u32 {
  var low = 0u;
  for (var bit = 0x80000000u; bit != 0u; bit >>= 1u) {
    if (mass_from(p, max(low | bit, least), largest, thread) >= enough) {
      low |= bit;
    }
  }
  return max(low, least);
}

fn wide_product(a: u32, b: u32) -> vec2<u32> {  // low, high
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  return vec2<u32>((other << 16u) | (low & 0xffffu), a1 * b1 + (middle >> 16u) + (other >> 16u));
}

// A number in [0, 1) of 24 random bits (Salmon et al. 2011).
fn uniform_number(position: u32, sequence: vec2<u32>, seed: vec2<u32>) -> f32 {
  var counter = vec4<u32>(position, 0u, sequence.x, sequence.y);
  var key = seed;
  for (var round = 0; round < 10; round++) {
    let a = wide_product(0xd2511f53u, counter.x);
    let b = wide_product(0xcd9e8d57u, counter.z);
    counter = vec4<u32>(b.y ^ counter.y ^ key.x, b.x, a.y ^ counter.w ^ key.y, a.x);
    key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return f32(counter.x >> 8u) * (1.0 / 16777216.0);
}

// One draw over the logits that reach a threshold: each thread sums a run of ids, thread 0 finds the run, and then the
// id in it.
fn draw(p: Parameters, threshold: u32, share: f32, largest: f32, thread: u32) -> u32 {
  let run = (params.srcCols + kThreads - 1u) / kThreads;
  let begin = min(thread * run, params.srcCols);
  let end = min(begin + run, params.srcCols);
  var mine = 0.0;
  for (var id = begin; id < end; id++) {
    let x = logit(p, id);
    if (ordered(x) >= threshold) {
      mine += mass(p, x, largest);
    }
  }
  numbers[thread] = mine;
  workgroupBarrier();
  if (thread != 0u) {
    return kNoToken;
  }
  var total = 0.0;
  for (var i = 0u; i < kThreads; i++) {
    total += numbers[i];
  }
  let wanted = share * total;
  var sum = 0.0;
  var last = kNoToken;
  for (var i = 0u; i < kThreads; i++) {
    if (numbers[i] == 0.0) {
      continue;
    }
    if (sum + numbers[i] <= wanted) {
      sum += numbers[i];
      last = i;
      continue;
    }
    last = i;
    break;
  }
  let begin_of_run = min(last * run, params.srcCols);
  var chosen = kNoToken;
  for (var id = begin_of_run; id < min(begin_of_run + run, params.srcCols); id++) {
    let x = logit(p, id);
    if (ordered(x) >= threshold) {
      chosen = id;
      sum += mass(p, x, largest);
      if (sum > wanted) {
        return id;
      }
    }
  }
  return chosen;
}

// entry sample(params, batch, src, dst) dispatch(rows)
@compute @workgroup_size(256)
fn sample(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let at = batch[5] + group.x * 16u;
  let p = Parameters(group.x * params.srcStride, batch[at + 4u], batch[at + 5u], bitcast<f32>(batch[at + 6u]),
                     bitcast<f32>(batch[at + 10u]));
  let top_k = batch[at + 7u];
  let top_p = bitcast<f32>(batch[at + 8u]);
  let min_p = bitcast<f32>(batch[at + 9u]);
  let position = batch[at + 2u] + batch[at + 1u] - 1u;

  var most = bitcast<f32>(0xff7fffffu);
  var best = kNoToken;
  var bad = 0u;
  // Eight at a time, so that their reads overlap.
  for (var first = thread; first < params.srcCols; first += 8u * kThreads) {
    var logits: array<f32, 8>;
    for (var i = 0u; i < 8u; i++) {
      logits[i] = logit(p, min(first + i * kThreads, params.srcCols - 1u));
    }
    for (var i = 0u; i < 8u; i++) {
      if (is_nan(logits[i]) || logits[i] > 3.4e38) {
        bad = 1u;
      }
      if (logits[i] > most) {
        most = logits[i];
        best = min(first + i * kThreads, params.srcCols - 1u);
      }
    }
  }
  let not_finite = count_of_all(bad, thread);
  largest_of_all(most, best, thread);
  let largest = workgroupUniformLoad(&numbers[0]);
  let greedy = workgroupUniformLoad(&integers[0]);
  var token = greedy;
  if (not_finite > 0u) {
    token = kNoToken;
  }
  if (token != kNoToken && p.temperature > 0.0) {
    var threshold = ordered(bitcast<f32>(0xff7fffffu));
    if (top_k > 0u && top_k < params.srcCols) {
      threshold = max(threshold, count_threshold(p, top_k, thread));
    }
    if (top_p < 1.0) {
      let enough = mass_from(p, threshold, largest, thread) * top_p;
      threshold = mass_threshold(p, threshold, enough, largest, thread);
    }
    if (min_p > 0.0) {
      threshold = max(threshold, ordered(largest + p.temperature * log(min_p)));
    }
    token = draw(p, threshold, uniform_number(position, vec2<u32>(batch[at + 13u], batch[at + 14u]),
                 vec2<u32>(batch[at + 11u], batch[at + 12u])), largest, thread);
  }
  if (thread == 0u) {
    dst[group.x * params.dstStride] = token;
  }
}
