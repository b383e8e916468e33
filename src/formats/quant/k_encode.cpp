// Encoding of K-quants: a search for the smallest squared error. Each sub-block is fitted alone, over a range of step
// sizes with a least-squares refit of each; then the shared scales d and dmin, the integer scales of the sub-blocks and
// the codes are improved in turn while the block's error falls. Errors count the same, whatever |x|, unless the caller
// knows how large the inputs of the columns are (q4_k and q5_k). Sums run in eight lanes, in an order that no compiler
// may change.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "formats/quant/blocks.h"

namespace candor::quant {
namespace {

constexpr int kLanes = 8;
constexpr float kLargestHalf = 65504.0f;
constexpr float kTrials = 4;  ///< values of d tried at first: the largest scale as the top integer, the one below, …

/// The nearest integer, halves to even, for |value| < 2^22.
float round_even(float value) {
  constexpr float kShift = 0x1.8p23f;
  return (value + kShift) - kShift;
}

/// NaN gives `low`.
float clamp(float value, float low, float high) {
  value = value > low ? value : low;
  return value < high ? value : high;
}

float reciprocal_or_zero(float value) {
  return value != 0.0f ? 1.0f / value : 0.0f;
}

float add_lanes(const float* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <int N>
float sum(const float* a) {
  float lanes[kLanes] = {};
  for (int i = 0; i < N; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane];
  return add_lanes(lanes);
}

template <int N>
float dot(const float* a, const float* b) {
  float lanes[kLanes] = {};
  for (int i = 0; i < N; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  return add_lanes(lanes);
}

template <int N>
float weighted_dot(const float* weights, const float* a, const float* b) {
  float lanes[kLanes] = {};
  for (int i = 0; i < N; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += weights[i + lane] * a[i + lane] * b[i + lane];
  return add_lanes(lanes);
}

/// Codes of x ≈ scale · code − min.
template <int N>
void choose_codes(const float* x, float scale, float min, float low, float high, float* codes) {
  const float inverse = reciprocal_or_zero(scale);
  for (int i = 0; i < N; ++i) codes[i] = round_even(clamp((x[i] + min) * inverse, low, high));
}

template <int N>
float squared_error(const float* x, const float* codes, float scale, float min) {
  float lanes[kLanes] = {};
  for (int i = 0; i < N; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float difference = scale * codes[i + lane] - min - x[i + lane];
      lanes[lane] += difference * difference;
    }
  }
  return add_lanes(lanes);
}

template <int N>
float weighted_error(const float* x, const float* weights, const float* codes, float scale, float min) {
  float lanes[kLanes] = {};
  for (int i = 0; i < N; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float difference = scale * codes[i + lane] - min - x[i + lane];
      lanes[lane] += weights[i + lane] * difference * difference;
    }
  }
  return add_lanes(lanes);
}

/// The binary16 nearest to a scale, kept finite.
float to_half(float value) {
  return f16_to_f32(f32_to_f16(clamp(value, -kLargestHalf, kLargestHalf)));
}

// ---- q4_k and q5_k: x ≈ d·s·code − dmin·m, codes 0 … top, s and m 0 … 63 -------------------------------------------

constexpr int kSub = 32;
constexpr int kSubs = 8;
constexpr float kTopScale = 63.0f;

struct Affine {
  float scale = 0;
  float min = 0;  ///< not negative
};

/// 256 values to be encoded, and how much the error of each counts.
struct Values {
  const float* x = nullptr;
  const float* weights = nullptr;  ///< not negative

  [[nodiscard]] Values sub(int index) const { return {x + index * kSub, weights + index * kSub}; }
};

/// One sub-block shifted up by its minimum (or by 0), so that sums lose no digits to a common offset.
struct Shifted {
  std::array<float, kSub> weighted{};  ///< weight · y, where y = x + shift is not negative
  const float* weights = nullptr;
  float shift = 0;    ///< not negative
  float sum = 0;      ///< Σ weight · y
  float sum_w = 0;    ///< Σ weight
  float largest = 0;  ///< of y
  std::array<float, kSub> y{};
};

Shifted shift_up(const Values& values) {
  const auto [least, most] = std::minmax_element(values.x, values.x + kSub);
  Shifted out;
  out.weights = values.weights;
  out.shift = std::max(-*least, 0.0f);
  out.largest = *most + out.shift;
  for (std::size_t i = 0; i < kSub; ++i) {
    out.y[i] = values.x[i] + out.shift;
    out.weighted[i] = values.weights[i] * out.y[i];
  }
  out.sum = sum<kSub>(out.weighted.data());
  out.sum_w = sum<kSub>(values.weights);
  return out;
}

/// y ≈ scale · code − low, and by how much its weighted squared error is below Σ weight · y².
struct Line {
  float scale = 0;
  float low = 0;
  float gain = -1;
};

/// Rounds to codes with `start` and fits a line to them by least squares, keeping shift + low, the sub-block's minimum,
/// from being negative.
Line round_and_fit(const Shifted& sub, const Line& start, float top) {
  std::array<float, kSub> codes;
  choose_codes<kSub>(sub.y.data(), start.scale, start.low, 0, top, codes.data());
  const float sum_c = dot<kSub>(sub.weights, codes.data());
  const float sum_cc = weighted_dot<kSub>(sub.weights, codes.data(), codes.data());
  const float sum_yc = dot<kSub>(sub.weighted.data(), codes.data());
  if (!(sum_cc > 0.0f)) return {};
  const float determinant = sub.sum_w * sum_cc - sum_c * sum_c;
  Line line;
  line.low = determinant > 0.0f ? (sum_c * sum_yc - sum_cc * sub.sum) / determinant : 0.0f;
  line.low = std::max(line.low, -sub.shift);
  line.scale = (sum_yc + line.low * sum_c) / sum_cc;
  line.gain = line.scale * (2 * sum_yc - line.scale * sum_cc) +
              line.low * (2 * (line.scale * sum_c - sub.sum) - line.low * sub.sum_w);
  return line;
}

/// Fits one sub-block with unquantized scale and minimum.
Affine fit_affine(const Values& values, float top) {
  const Shifted sub = shift_up(values);
  if (!(sub.largest > 0.0f)) return {0.0f, sub.shift};
  Line best{sub.largest / top, 0, -1};
  constexpr int kSteps = 14;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const Line line = round_and_fit(sub, {sub.largest / (top + 0.1f * static_cast<float>(step))}, top);
    if (line.gain > best.gain) best = line;
  }
  for (int round = 0; round < 3; ++round) {
    const Line line = round_and_fit(sub, best, top);
    if (!(line.gain > best.gain)) break;
    best = line;
  }
  return {best.scale, sub.shift + best.low};
}

struct AffineBlock {
  float d = 0;
  float dmin = 0;
  std::array<float, kSubs> scale{};  ///< integers 0 … 63
  std::array<float, kSubs> min{};    ///< integers 0 … 63
  std::array<float, kSuper> codes{};
  float error = 0;
};

/// Chooses the integer scale and minimum of one sub-block within `reach` of the wanted ones, and its codes; returns the
/// error.
float settle_sub(const Values& values, float top, Affine wanted, float reach, AffineBlock& block, int sub) {
  const float near_scale =
      clamp(round_even(clamp(wanted.scale * reciprocal_or_zero(block.d), 0, kTopScale)), 0, kTopScale);
  const float near_min =
      clamp(round_even(clamp(wanted.min * reciprocal_or_zero(block.dmin), 0, kTopScale)), 0, kTopScale);
  float best_error = std::numeric_limits<float>::infinity();
  std::array<float, kSub> codes;
  for (float scale = std::max(near_scale - reach, 0.0f); scale <= std::min(near_scale + reach, kTopScale); ++scale) {
    for (float min = std::max(near_min - reach, 0.0f); min <= std::min(near_min + reach, kTopScale); ++min) {
      choose_codes<kSub>(values.x, block.d * scale, block.dmin * min, 0, top, codes.data());
      const float error =
          weighted_error<kSub>(values.x, values.weights, codes.data(), block.d * scale, block.dmin * min);
      if (!(error < best_error)) continue;
      best_error = error;
      block.scale[static_cast<std::size_t>(sub)] = scale;
      block.min[static_cast<std::size_t>(sub)] = min;
      std::copy(codes.begin(), codes.end(), block.codes.begin() + sub * kSub);
    }
  }
  return best_error;
}

AffineBlock settle(const Values& values, float top, const std::array<Affine, kSubs>& wanted, float d, float dmin,
                   float reach) {
  AffineBlock block;
  block.d = to_half(d);
  block.dmin = to_half(dmin);
  for (int sub = 0; sub < kSubs; ++sub)
    block.error += settle_sub(values.sub(sub), top, wanted[static_cast<std::size_t>(sub)], reach, block, sub);
  return block;
}

/// The least-squares d and dmin for a block's integer scales and codes.
Affine refit_shared(const Values& values, const AffineBlock& block) {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;  // a = scale · code, b = min
  for (int sub = 0; sub < kSubs; ++sub) {
    const float* codes = block.codes.data() + sub * kSub;
    const double s = block.scale[static_cast<std::size_t>(sub)];
    const double m = block.min[static_cast<std::size_t>(sub)];
    const auto [x, weights] = values.sub(sub);
    aa += s * s * weighted_dot<kSub>(weights, codes, codes);
    ab += s * m * dot<kSub>(weights, codes);
    bb += sum<kSub>(weights) * m * m;
    xa += s * weighted_dot<kSub>(weights, x, codes);
    xb += m * dot<kSub>(weights, x);
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 0) {
    const double dmin = (ab * xa - aa * xb) / determinant;
    if (dmin >= 0) return {static_cast<float>((xa * bb - xb * ab) / determinant), static_cast<float>(dmin)};
  }
  return {aa > 0 ? static_cast<float>(xa / aa) : 0.0f, 0.0f};
}

AffineBlock search_affine(const Values& values, float top) {
  std::array<Affine, kSubs> wanted;
  float top_scale = 0;
  float top_min = 0;
  for (int sub = 0; sub < kSubs; ++sub) {
    Affine& fit = wanted[static_cast<std::size_t>(sub)];
    fit = fit_affine(values.sub(sub), top);
    top_scale = std::max(top_scale, fit.scale);
    top_min = std::max(top_min, fit.min);
  }
  AffineBlock best;
  best.error = std::numeric_limits<float>::infinity();
  for (float steps = kTopScale; steps > kTopScale - kTrials; --steps) {
    const AffineBlock trial = settle(values, top, wanted, top_scale / steps, top_min / steps, 0);
    if (trial.error < best.error) best = trial;
  }
  best = settle(values, top, wanted, best.d, best.dmin, 1);
  for (int round = 0; round < 3; ++round) {
    const Affine shared = refit_shared(values, best);
    if (!(shared.scale > 0.0f)) break;
    const AffineBlock next = settle(values, top, wanted, shared.scale, shared.min, 1);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(value);
}

void pack_scale_min(const AffineBlock& block, std::uint8_t* packed) {
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned s = to_byte(block.scale[i]), s4 = to_byte(block.scale[i + 4]);
    const unsigned m = to_byte(block.min[i]), m4 = to_byte(block.min[i + 4]);
    packed[i] = static_cast<std::uint8_t>(s | s4 >> 4 << 6);
    packed[i + 4] = static_cast<std::uint8_t>(m | m4 >> 4 << 6);
    packed[i + 8] = static_cast<std::uint8_t>((s4 & 15) | (m4 & 15) << 4);
  }
}

void pack_low_nibbles(const AffineBlock& block, std::uint8_t* out) {
  for (std::size_t i = 0; i < kSuper / 2; ++i) {
    const std::size_t first = i / 32 * 64 + i % 32;
    out[i] =
        static_cast<std::uint8_t>((to_byte(block.codes[first]) & 15) | (to_byte(block.codes[first + 32]) & 15) << 4);
  }
}

// ---- q6_k: x ≈ d·s·code, codes −32 … 31, s −128 … 127 ------------------------------------------------------------

constexpr int kSixSub = 16;
constexpr int kSixSubs = 16;
constexpr float kLowCode = -32.0f;
constexpr float kHighCode = 31.0f;

/// Fits one sub-block with an unquantized scale.
float fit_symmetric(const float* x) {
  const float* extreme = std::max_element(x, x + kSixSub, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  if (!(std::fabs(*extreme) > 0.0f)) return 0.0f;
  float best = 0;
  float best_gain = -1;
  std::array<float, kSixSub> codes;
  constexpr int kSteps = 12;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float scale = *extreme / (kLowCode + 0.1f * static_cast<float>(step));
    choose_codes<kSixSub>(x, scale, 0, kLowCode, kHighCode, codes.data());
    const float sum_xc = dot<kSixSub>(x, codes.data());
    const float sum_cc = dot<kSixSub>(codes.data(), codes.data());
    const float gain = sum_cc > 0.0f ? sum_xc * (sum_xc / sum_cc) : 0.0f;
    if (gain > best_gain) {
      best_gain = gain;
      best = sum_cc > 0.0f ? sum_xc / sum_cc : 0.0f;
    }
  }
  return best;
}

struct SymmetricBlock {
  float d = 0;
  std::array<float, kSixSubs> scale{};  ///< integers −128 … 127
  std::array<float, kSuper> codes{};
  float error = 0;
};

float settle_symmetric_sub(const float* x, float wanted, float reach, SymmetricBlock& block, int sub) {
  const float nearest = round_even(clamp(wanted * reciprocal_or_zero(block.d), -128, 127));
  float best_error = std::numeric_limits<float>::infinity();
  std::array<float, kSixSub> codes;
  for (float scale = std::max(nearest - reach, -128.0f); scale <= std::min(nearest + reach, 127.0f); ++scale) {
    choose_codes<kSixSub>(x, block.d * scale, 0, kLowCode, kHighCode, codes.data());
    const float error = squared_error<kSixSub>(x, codes.data(), block.d * scale, 0);
    if (!(error < best_error)) continue;
    best_error = error;
    block.scale[static_cast<std::size_t>(sub)] = scale;
    std::copy(codes.begin(), codes.end(), block.codes.begin() + sub * kSixSub);
  }
  return best_error;
}

SymmetricBlock settle_symmetric(const float* x, const std::array<float, kSixSubs>& wanted, float d, float reach) {
  SymmetricBlock block;
  block.d = to_half(d);
  for (int sub = 0; sub < kSixSubs; ++sub)
    block.error += settle_symmetric_sub(x + sub * kSixSub, wanted[static_cast<std::size_t>(sub)], reach, block, sub);
  return block;
}

float refit_shared(const float* x, const SymmetricBlock& block) {
  double aa = 0, xa = 0;  // a = scale · code
  for (int sub = 0; sub < kSixSubs; ++sub) {
    const float* codes = block.codes.data() + sub * kSixSub;
    const double s = block.scale[static_cast<std::size_t>(sub)];
    aa += s * s * dot<kSixSub>(codes, codes);
    xa += s * dot<kSixSub>(x + sub * kSixSub, codes);
  }
  return aa > 0 ? static_cast<float>(xa / aa) : 0.0f;
}

SymmetricBlock search_symmetric(const float* x) {
  std::array<float, kSixSubs> wanted;
  float extreme = 0;
  for (int sub = 0; sub < kSixSubs; ++sub) {
    float& fit = wanted[static_cast<std::size_t>(sub)];
    fit = fit_symmetric(x + sub * kSixSub);
    if (std::fabs(fit) > std::fabs(extreme)) extreme = fit;
  }
  SymmetricBlock best;
  best.error = std::numeric_limits<float>::infinity();
  for (float steps = -128; steps < -128 + kTrials; ++steps) {
    const SymmetricBlock trial = settle_symmetric(x, wanted, extreme / steps, 0);
    if (trial.error < best.error) best = trial;
  }
  best = settle_symmetric(x, wanted, best.d, 1);
  for (int round = 0; round < 3; ++round) {
    const SymmetricBlock next = settle_symmetric(x, wanted, refit_shared(x, best), 1);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

constexpr std::array<float, kSuper> kEqualWeights = [] {
  std::array<float, kSuper> weights{};
  for (float& weight : weights) weight = 1.0f;
  return weights;
}();

}  // namespace

void encode_q4_k(const float* in, std::uint8_t* block) {
  encode_q4_k_weighted(in, kEqualWeights.data(), block);
}

void encode_q5_k(const float* in, std::uint8_t* block) {
  encode_q5_k_weighted(in, kEqualWeights.data(), block);
}

void encode_q4_k_weighted(const float* in, const float* weights, std::uint8_t* block) {
  const AffineBlock found = search_affine({in, weights}, 15.0f);
  store_half(block, found.d);
  store_half(block + 2, found.dmin);
  pack_scale_min(found, block + 4);
  pack_low_nibbles(found, block + 16);
}

void encode_q5_k_weighted(const float* in, const float* weights, std::uint8_t* block) {
  const AffineBlock found = search_affine({in, weights}, 31.0f);
  store_half(block, found.d);
  store_half(block + 2, found.dmin);
  pack_scale_min(found, block + 4);
  for (std::size_t i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (std::size_t sub = 0; sub < 8; ++sub) bits |= (to_byte(found.codes[sub * 32 + i]) >> 4 & 1u) << sub;
    block[16 + i] = static_cast<std::uint8_t>(bits);
  }
  pack_low_nibbles(found, block + 48);
}

void encode_q6_k(const float* in, std::uint8_t* block) {
  const SymmetricBlock found = search_symmetric(in);
  const auto code = [&](std::size_t i) { return static_cast<unsigned>(found.codes[i] - kLowCode); };
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t first = half * 128 + i;
      block[half * 64 + i] = static_cast<std::uint8_t>((code(first) & 15) | (code(first + 64) & 15) << 4);
    }
    for (std::size_t i = 0; i < 32; ++i) {
      unsigned bits = 0;
      for (std::size_t pair = 0; pair < 4; ++pair) bits |= code(half * 128 + pair * 32 + i) >> 4 << 2 * pair;
      block[128 + half * 32 + i] = static_cast<std::uint8_t>(bits);
    }
  }
  for (std::size_t sub = 0; sub < kSixSubs; ++sub)
    block[192 + sub] = static_cast<std::uint8_t>(static_cast<std::int8_t>(found.scale[sub]));
  store_half(block + 208, found.d);
}

}  // namespace candor::quant
