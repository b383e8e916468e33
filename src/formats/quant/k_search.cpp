// Compiled once for each instruction set, into a namespace of its name (CANDOR_QUANT_ISA).
#include "formats/quant/k_search.h"

#include <cmath>
#include <limits>

#include "formats/quant/k_lanes.h"

namespace candor::quant::CANDOR_QUANT_ISA {
namespace {

constexpr float kLargestHalf = 65504.0f;
constexpr int kTrials = 4;  ///< values of d tried at first: the largest scale as the top integer, the one below, …

/// The binary16 nearest to a scale, kept finite.
float to_half(float value) {
  return f16_to_f32(f32_to_f16(clamp(value, -kLargestHalf, kLargestHalf)));
}

// ---- q4_k and q5_k: x ≈ d·s·code − dmin·m, codes 0 … top, s and m 0 … 63 -------------------------------------------

constexpr int kSub = 32;
constexpr float kTopScale = 63.0f;
using SubRow = Row<kSub>;

struct Affine {
  float scale = 0;
  float min = 0;  ///< not negative
};

/// 256 values to be encoded, and how much the error of each counts.
struct Values {
  const float* x = nullptr;
  const float* weights = nullptr;

  [[nodiscard]] SubRow sub(int index) const { return SubRow::load(x + index * kSub); }
  [[nodiscard]] SubRow sub_weights(int index) const { return SubRow::load(weights + index * kSub); }
};

/// One sub-block shifted up by its minimum (or by 0), so that sums lose no digits to a common offset.
struct Shifted {
  SubRow y;  ///< x + shift, not negative
  SubRow weights;
  SubRow weighted;    ///< weight · y
  float shift = 0;    ///< not negative
  float sum = 0;      ///< Σ weight · y
  float sum_w = 0;    ///< Σ weight
  float largest = 0;  ///< of y
};

CANDOR_INLINE Shifted shift_up(const SubRow& x, const SubRow& weights) {
  Lanes least = x.v[0];
  Lanes most = x.v[0];
  for (int i = 1; i < SubRow::kVectors; ++i) {
    least = smaller(x.v[i], least);
    most = larger(x.v[i], most);
  }
  float smallest = least[0];
  float largest = most[0];
  for (int lane = 1; lane < kWidth; ++lane) {
    smallest = least[lane] < smallest ? least[lane] : smallest;
    largest = most[lane] > largest ? most[lane] : largest;
  }
  Shifted out;
  out.weights = weights;
  out.shift = -smallest > 0.0f ? -smallest : 0.0f;
  out.largest = largest + out.shift;
  for (int i = 0; i < SubRow::kVectors; ++i) {
    out.y.v[i] = x.v[i] + out.shift;
    out.weighted.v[i] = weights.v[i] * out.y.v[i];
  }
  out.sum = sum(out.weighted);
  out.sum_w = sum(weights);
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
CANDOR_INLINE Line round_and_fit(const Shifted& sub, const Line& start, float top) {
  const SubRow codes = choose_codes(sub.y, start.scale, start.low, 0, top);
  const float sum_c = dot(sub.weights, codes);
  const float sum_cc = weighted_dot(sub.weights, codes, codes);
  const float sum_yc = dot(sub.weighted, codes);
  if (!(sum_cc > 0.0f)) return {};
  const float determinant = sub.sum_w * sum_cc - sum_c * sum_c;
  Line line;
  line.low = determinant > 0.0f ? (sum_c * sum_yc - sum_cc * sub.sum) / determinant : 0.0f;
  line.low = line.low < -sub.shift ? -sub.shift : line.low;
  line.scale = (sum_yc + line.low * sum_c) / sum_cc;
  line.gain = line.scale * (2 * sum_yc - line.scale * sum_cc) +
              line.low * (2 * (line.scale * sum_c - sub.sum) - line.low * sub.sum_w);
  return line;
}

/// Sums of eight fits at once.
struct FitSums {
  Lanes c, cc, yc;

  CANDOR_INLINE FitSums& operator+=(const FitSums& other) {
    c += other.c;
    cc += other.cc;
    yc += other.yc;
    return *this;
  }
  CANDOR_INLINE FitSums operator+(const FitSums& other) const { return FitSums(*this) += other; }
};

/// A Shifted's values one by one.
struct ShiftedValues {
  float y[kSub], weights[kSub], weighted[kSub];
};

/// round_and_fit() from eight scales, in place; `gains` are −1 where there is no fit.
CANDOR_INLINE void round_and_fit_eight(const Shifted& sub, const ShiftedValues& values, Lanes& scales, Lanes& lows,
                                       Lanes& gains, float top) {
  const Lanes inverse = reciprocal_or_zero(scales);
  const auto sums = sum_in_order<FitSums, kSub>([&](int i) {
    const Lanes codes = to_code(values.y[i] * inverse, 0, top);
    const Lanes weighted = values.weights[i] * codes;
    return FitSums{weighted, weighted * codes, values.weighted[i] * codes};
  });
  const Lanes determinant = sub.sum_w * sums.cc - sums.c * sums.c;
  lows = determinant > Lanes{} ? (sums.c * sums.yc - sums.cc * sub.sum) / determinant : Lanes{};
  lows = lows < Lanes{} - sub.shift ? Lanes{} - sub.shift : lows;
  scales = (sums.yc + lows * sums.c) / sums.cc;
  gains = scales * (2 * sums.yc - scales * sums.cc) + lows * (2 * (scales * sums.c - sub.sum) - lows * sub.sum_w);
  gains = sums.cc > Lanes{} ? gains : Lanes{} - 1.0f;
}

/// Fits one sub-block with unquantized scale and minimum.
Affine fit_affine(const SubRow& x, const SubRow& weights, float top) {
  const Shifted sub = shift_up(x, weights);
  if (!(sub.largest > 0.0f)) return {0.0f, sub.shift};
  ShiftedValues values;
  sub.y.store(values.y);
  sub.weights.store(values.weights);
  sub.weighted.store(values.weighted);
  Line best{sub.largest / top, 0, -1};
  constexpr int kSteps = 14;
  for (int first = -kSteps; first <= kSteps; first += kWidth) {
    Lanes steps, lows, gains;
    for (int lane = 0; lane < kWidth; ++lane) steps[lane] = static_cast<float>(first + lane);
    Lanes scales = sub.largest / (top + 0.1f * steps);
    round_and_fit_eight(sub, values, scales, lows, gains, top);
    for (int lane = 0; lane < kWidth && first + lane <= kSteps; ++lane)
      if (gains[lane] > best.gain) best = {scales[lane], lows[lane], gains[lane]};
  }
  for (int round = 0; round < 3; ++round) {
    const Line line = round_and_fit(sub, best, top);
    if (!(line.gain > best.gain)) break;
    best = line;
  }
  return {best.scale, sub.shift + best.low};
}

/// A block whose codes are not written down yet: they follow from the rest.
struct AffineTrial {
  float d = 0;
  float dmin = 0;
  float scale[kAffineSubs] = {};
  float min[kAffineSubs] = {};
  float error = std::numeric_limits<float>::infinity();

  [[nodiscard]] CANDOR_INLINE SubRow codes(const SubRow& x, int sub, float top) const {
    return choose_codes(x, d * scale[sub], dmin * min[sub], 0, top);
  }
};

template <typename V>
CANDOR_INLINE V nearest_scale(float wanted, V inverse) {
  return to_code(wanted * inverse, 0, kTopScale);
}

/// The errors of a sub-block with several steps and minima, a lane each.
template <typename V>
CANDOR_INLINE V affine_errors(const Values& sub, V step, V low, float top) {
  const V inverse = reciprocal_or_zero(step);
  return sum_in_order<V, kSub>([&](int i) {
    const V difference = step * to_code((sub.x[i] + low) * inverse, 0, top) - low - sub.x[i];
    return sub.weights[i] * difference * difference;
  });
}

/// The same of one step and minimum, the values in lanes.
CANDOR_INLINE float affine_error(const SubRow& x, const SubRow& weights, float step, float low, float top) {
  const SubRow codes = choose_codes(x, step, low, 0, top);
  Lanes errors{};
  for (int i = 0; i < SubRow::kVectors; ++i) {
    const Lanes difference = step * codes.v[i] - low - x.v[i];
    errors += weights.v[i] * difference * difference;
  }
  return add_lanes(errors);
}

/// Chooses the integer scale and minimum of one sub-block among the wanted ones and their neighbours; returns the
/// error.
CANDOR_INLINE float settle_sub(const Values& values, float top, Affine wanted, AffineTrial& block, int sub) {
  const float near_scale = nearest_scale(wanted.scale, Half{} + reciprocal_or_zero(block.d))[0];
  const float near_min = nearest_scale(wanted.min, Half{} + reciprocal_or_zero(block.dmin))[0];
  // Nine pairs: eight in lanes, the last alone.
  constexpr int kPairs = 9;
  const Lanes scales = near_scale + Lanes{-1, -1, -1, 0, 0, 0, 1, 1};
  const Lanes mins = near_min + Lanes{-1, 0, 1, -1, 0, 1, -1, 0};
  const Values in_sub{values.x + sub * kSub, values.weights + sub * kSub};
  const Lanes eight = affine_errors(in_sub, block.d * scales, block.dmin * mins, top);
  const float last = affine_error(values.sub(sub), values.sub_weights(sub), block.d * (near_scale + 1),
                                  block.dmin * (near_min + 1), top);
  float best_error = std::numeric_limits<float>::infinity();
  for (int pair = 0; pair < kPairs; ++pair) {
    const float scale = near_scale + static_cast<float>(pair / 3 - 1);
    const float min = near_min + static_cast<float>(pair % 3 - 1);
    const float error = pair < kWidth ? eight[pair] : last;
    if (!(error < best_error) || scale < 0 || scale > kTopScale || min < 0 || min > kTopScale) continue;
    best_error = error;
    block.scale[sub] = scale;
    block.min[sub] = min;
  }
  return best_error;
}

AffineTrial settle(const Values& values, float top, const Affine* wanted, float d, float dmin) {
  AffineTrial block;
  block.d = to_half(d);
  block.dmin = to_half(dmin);
  block.error = 0;
  for (int sub = 0; sub < kAffineSubs; ++sub) block.error += settle_sub(values, top, wanted[sub], block, sub);
  return block;
}

/// Of the first values of d and dmin the ones with the smallest error.
Affine try_shared(const Values& values, float top, const Affine* wanted, float top_scale, float top_min) {
  Half d, dmin;
  for (int trial = 0; trial < kTrials; ++trial) {
    d[trial] = to_half(top_scale / (kTopScale - static_cast<float>(trial)));
    dmin[trial] = to_half(top_min / (kTopScale - static_cast<float>(trial)));
  }
  Half errors{};
  for (int sub = 0; sub < kAffineSubs; ++sub) {
    const Half scales = nearest_scale(wanted[sub].scale, reciprocal_or_zero(d));
    const Half mins = nearest_scale(wanted[sub].min, reciprocal_or_zero(dmin));
    errors += affine_errors({values.x + sub * kSub, values.weights + sub * kSub}, d * scales, dmin * mins, top);
  }
  int best = 0;
  for (int trial = 1; trial < kTrials; ++trial)
    if (errors[trial] < errors[best]) best = trial;
  return {d[best], dmin[best]};
}

/// Sums over each sub-block that no fit changes.
struct FixedSums {
  float w[kAffineSubs];   ///< Σ weight
  float wx[kAffineSubs];  ///< Σ weight · x
};

/// The least-squares d and dmin for a block's integer scales and codes.
Affine refit_shared(const Values& values, const FixedSums& fixed, float top, const AffineTrial& block) {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;  // a = scale · code, b = min
  for (int sub = 0; sub < kAffineSubs; ++sub) {
    const SubRow x = values.sub(sub);
    const SubRow weights = values.sub_weights(sub);
    const SubRow codes = block.codes(x, sub, top);
    const double s = block.scale[sub];
    const double m = block.min[sub];
    aa += s * s * weighted_dot(weights, codes, codes);
    ab += s * m * dot(weights, codes);
    bb += fixed.w[sub] * m * m;
    xa += s * weighted_dot(weights, x, codes);
    xb += m * fixed.wx[sub];
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant > 0) {
    const double dmin = (ab * xa - aa * xb) / determinant;
    if (dmin >= 0) return {static_cast<float>((xa * bb - xb * ab) / determinant), static_cast<float>(dmin)};
  }
  return {aa > 0 ? static_cast<float>(xa / aa) : 0.0f, 0.0f};
}

AffineBlock search_affine(const float* x, const float* weights, float top) {
  const Values values{x, weights};
  Affine wanted[kAffineSubs];
  FixedSums fixed;
  float top_scale = 0;
  float top_min = 0;
  for (int sub = 0; sub < kAffineSubs; ++sub) {
    wanted[sub] = fit_affine(values.sub(sub), values.sub_weights(sub), top);
    fixed.w[sub] = sum(values.sub_weights(sub));
    fixed.wx[sub] = dot(values.sub_weights(sub), values.sub(sub));
    top_scale = wanted[sub].scale > top_scale ? wanted[sub].scale : top_scale;
    top_min = wanted[sub].min > top_min ? wanted[sub].min : top_min;
  }
  const Affine first = try_shared(values, top, wanted, top_scale, top_min);
  AffineTrial best = settle(values, top, wanted, first.scale, first.min);
  for (int round = 0; round < 3; ++round) {
    const Affine shared = refit_shared(values, fixed, top, best);
    if (!(shared.scale > 0.0f)) break;
    const AffineTrial next = settle(values, top, wanted, shared.scale, shared.min);
    if (!(next.error < best.error)) break;
    best = next;
  }
  AffineBlock out;
  out.d = best.d;
  out.dmin = best.dmin;
  for (int sub = 0; sub < kAffineSubs; ++sub) {
    out.scale[static_cast<std::size_t>(sub)] = best.scale[sub];
    out.min[static_cast<std::size_t>(sub)] = best.min[sub];
    best.codes(values.sub(sub), sub, top).store(out.codes.data() + sub * kSub);
  }
  return out;
}

// ---- q6_k: x ≈ d·s·code, codes −32 … 31, s −128 … 127 ------------------------------------------------------------

constexpr int kSixSub = 16;
constexpr float kLowCode = kLowSixCode;
constexpr float kHighCode = 31.0f;
using SixRow = Row<kSixSub>;

CANDOR_INLINE SixRow six_codes(const SixRow& x, float scale) {
  return choose_codes(x, scale, 0, kLowCode, kHighCode);
}

/// Sums of several fits at once, a lane each.
template <typename V>
struct SixSums {
  V xc, cc;

  CANDOR_INLINE SixSums& operator+=(const SixSums& other) {
    xc += other.xc;
    cc += other.cc;
    return *this;
  }
  CANDOR_INLINE SixSums operator+(const SixSums& other) const { return SixSums(*this) += other; }
};

/// Fits one sub-block with an unquantized scale.
float fit_symmetric(const float* x) {
  float extreme = x[0];
  for (int i = 1; i < kSixSub; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  if (!(std::fabs(extreme) > 0.0f)) return 0.0f;
  float best = 0;
  float best_gain = -1;
  constexpr int kSteps = 12;
  for (int first = -kSteps; first <= kSteps; first += kWidth) {
    Lanes steps;
    for (int lane = 0; lane < kWidth; ++lane) steps[lane] = static_cast<float>(first + lane);
    const Lanes inverse = reciprocal_or_zero(extreme / (kLowCode + 0.1f * steps));
    const auto sums = sum_in_order<SixSums<Lanes>, kSixSub>([&](int i) {
      const Lanes codes = to_code(x[i] * inverse, kLowCode, kHighCode);
      return SixSums<Lanes>{x[i] * codes, codes * codes};
    });
    const Lanes scales = sums.cc > Lanes{} ? sums.xc / sums.cc : Lanes{};
    const Lanes gains = sums.cc > Lanes{} ? sums.xc * scales : Lanes{};
    for (int lane = 0; lane < kWidth && first + lane <= kSteps; ++lane) {
      if (!(gains[lane] > best_gain)) continue;
      best_gain = gains[lane];
      best = scales[lane];
    }
  }
  return best;
}

struct SymmetricTrial {
  float d = 0;
  float scale[kSymmetricSubs] = {};
  float error = std::numeric_limits<float>::infinity();
};

/// The errors of a sub-block with several steps, a lane each.
CANDOR_INLINE Half symmetric_errors(const float* x, Half step) {
  const Half inverse = reciprocal_or_zero(step);
  return sum_in_order<Half, kSixSub>([&](int i) {
    const Half difference = step * to_code(x[i] * inverse, kLowCode, kHighCode) - x[i];
    return difference * difference;
  });
}

constexpr float kLowScale = -128.0f;
constexpr float kHighScale = 127.0f;

/// Chooses the integer scale of one sub-block: the wanted one or a neighbour; returns the error.
CANDOR_INLINE float settle_symmetric_sub(const float* x, float wanted, SymmetricTrial& block, int sub) {
  const float nearest = to_code(Half{} + wanted * reciprocal_or_zero(block.d), kLowScale, kHighScale)[0];
  const Half errors = symmetric_errors(x, block.d * (nearest + Half{-1, 0, 1, 1}));
  float best_error = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 3; ++i) {
    const float scale = nearest + static_cast<float>(i - 1);
    if (!(errors[i] < best_error) || scale < kLowScale || scale > kHighScale) continue;
    best_error = errors[i];
    block.scale[sub] = scale;
  }
  return best_error;
}

SymmetricTrial settle_symmetric(const float* x, const float* wanted, float d) {
  SymmetricTrial block;
  block.d = to_half(d);
  block.error = 0;
  for (int sub = 0; sub < kSymmetricSubs; ++sub)
    block.error += settle_symmetric_sub(x + sub * kSixSub, wanted[sub], block, sub);
  return block;
}

/// Of the first values of d the one with the smallest error.
float try_symmetric(const float* x, const float* wanted, float extreme) {
  Half d;
  for (int trial = 0; trial < kTrials; ++trial) d[trial] = to_half(extreme / (kLowScale + static_cast<float>(trial)));
  Half errors{};
  for (int sub = 0; sub < kSymmetricSubs; ++sub) {
    const Half scales = to_code(wanted[sub] * reciprocal_or_zero(d), kLowScale, kHighScale);
    errors += symmetric_errors(x + sub * kSixSub, d * scales);
  }
  int best = 0;
  for (int trial = 1; trial < kTrials; ++trial)
    if (errors[trial] < errors[best]) best = trial;
  return d[best];
}

float refit_shared(const float* x, const SymmetricTrial& block) {
  double aa = 0, xa = 0;  // a = scale · code
  for (int sub = 0; sub < kSymmetricSubs; ++sub) {
    const SixRow row = SixRow::load(x + sub * kSixSub);
    const double s = block.scale[sub];
    const SixRow codes = six_codes(row, block.d * block.scale[sub]);
    aa += s * s * dot(codes, codes);
    xa += s * dot(row, codes);
  }
  return aa > 0 ? static_cast<float>(xa / aa) : 0.0f;
}

SymmetricBlock search_symmetric(const float* x) {
  float wanted[kSymmetricSubs];
  float extreme = 0;
  for (int sub = 0; sub < kSymmetricSubs; ++sub) {
    wanted[sub] = fit_symmetric(x + sub * kSixSub);
    if (std::fabs(wanted[sub]) > std::fabs(extreme)) extreme = wanted[sub];
  }
  SymmetricTrial best = settle_symmetric(x, wanted, try_symmetric(x, wanted, extreme));
  for (int round = 0; round < 3; ++round) {
    const SymmetricTrial next = settle_symmetric(x, wanted, refit_shared(x, best));
    if (!(next.error < best.error)) break;
    best = next;
  }
  SymmetricBlock out;
  out.d = best.d;
  for (int sub = 0; sub < kSymmetricSubs; ++sub) {
    out.scale[static_cast<std::size_t>(sub)] = best.scale[sub];
    six_codes(SixRow::load(x + sub * kSixSub), best.d * best.scale[sub]).store(out.codes.data() + sub * kSixSub);
  }
  return out;
}

#define CANDOR_TEXT(name) CANDOR_TEXT_OF(name)
#define CANDOR_TEXT_OF(name) #name

}  // namespace

KSearch search();
KSearch search() {
  return {CANDOR_TEXT(CANDOR_QUANT_ISA), search_affine, search_symmetric};
}

}  // namespace candor::quant::CANDOR_QUANT_ISA
