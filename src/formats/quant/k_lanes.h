// Vectors of eight floats for the K-quant search, on every instruction set with the same results: sums of lanes and of
// rows run in one order. Included by k_search.cpp alone, once for each set (CANDOR_QUANT_ISA).
#pragma once

#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace candor::quant::CANDOR_QUANT_ISA {

constexpr int kWidth = 8;
using Lanes = float __attribute__((vector_size(kWidth * sizeof(float))));
using Half = float __attribute__((vector_size(kWidth / 2 * sizeof(float))));

#define CANDOR_INLINE [[gnu::always_inline]] inline

constexpr float kShift = 0x1.8p23f;  ///< adding and subtracting it rounds |x| < 2^22 to an integer, halves to even

/// a > b ? a : b in each lane; where a is NaN, b.
CANDOR_INLINE Half larger(Half a, Half b) {
#if defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
CANDOR_INLINE Half smaller(Half a, Half b) {
#if defined(__SSE2__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

struct Halves {
  Half v[2];
};

CANDOR_INLINE Lanes larger(Lanes a, Lanes b) {
#if defined(__AVX__)
  return _mm256_max_ps(a, b);
#else
  const auto x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
  return __builtin_bit_cast(Lanes, Halves{{larger(x.v[0], y.v[0]), larger(x.v[1], y.v[1])}});
#endif
}
CANDOR_INLINE Lanes smaller(Lanes a, Lanes b) {
#if defined(__AVX__)
  return _mm256_min_ps(a, b);
#else
  const auto x = __builtin_bit_cast(Halves, a), y = __builtin_bit_cast(Halves, b);
  return __builtin_bit_cast(Lanes, Halves{{smaller(x.v[0], y.v[0]), smaller(x.v[1], y.v[1])}});
#endif
}

/// The integer nearest to `value`, between `low` and `high`; NaN gives `low`.
template <typename V>
CANDOR_INLINE V to_code(V value, float low, float high) {
  return (smaller(larger(value, V{} + low), V{} + high) + kShift) - kShift;
}

/// The sum of all lanes, always in this order.
CANDOR_INLINE float add_lanes(Lanes lanes) {
  const auto halves = __builtin_bit_cast(Halves, lanes);
  const Half sums = halves.v[0] + halves.v[1];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/// The sum of term(0) … term(N - 1) in the order in which a Row is summed. So a search may try several fits at once, a
/// lane each, or one whose values fill the lanes, to the same bits.
template <typename T, int N, typename Term>
CANDOR_INLINE T sum_in_order(Term term) {
  const auto lane = [&](int first) {
    T total{};
    for (int i = first; i < N; i += kWidth) total += term(i);
    return total;
  };
  return ((lane(0) + lane(4)) + (lane(2) + lane(6))) + ((lane(1) + lane(5)) + (lane(3) + lane(7)));
}

/// `N` values.
template <int N>
struct Row {
  static constexpr int kVectors = N / kWidth;
  Lanes v[kVectors];

  CANDOR_INLINE static Row load(const float* from) {
    Row row;
    std::memcpy(row.v, from, sizeof row.v);
    return row;
  }
  CANDOR_INLINE void store(float* to) const { std::memcpy(to, v, sizeof v); }
};

template <int N>
CANDOR_INLINE float sum(const Row<N>& a) {
  Lanes total{};
  for (int i = 0; i < Row<N>::kVectors; ++i) total += a.v[i];
  return add_lanes(total);
}

template <int N>
CANDOR_INLINE float dot(const Row<N>& a, const Row<N>& b) {
  Lanes total{};
  for (int i = 0; i < Row<N>::kVectors; ++i) total += a.v[i] * b.v[i];
  return add_lanes(total);
}

template <int N>
CANDOR_INLINE float weighted_dot(const Row<N>& weights, const Row<N>& a, const Row<N>& b) {
  Lanes total{};
  for (int i = 0; i < Row<N>::kVectors; ++i) total += weights.v[i] * a.v[i] * b.v[i];
  return add_lanes(total);
}

/// NaN gives `low`.
CANDOR_INLINE float clamp(float value, float low, float high) {
  value = value > low ? value : low;
  return value < high ? value : high;
}

CANDOR_INLINE float reciprocal_or_zero(float value) {
  return value != 0.0f ? 1.0f / value : 0.0f;
}
template <typename V>
CANDOR_INLINE V reciprocal_or_zero(V value) {
  return value != V{} ? 1.0f / value : V{};
}

/// Codes of x ≈ scale · code − min.
template <int N>
CANDOR_INLINE Row<N> choose_codes(const Row<N>& x, float scale, float min, float low, float high) {
  const float inverse = reciprocal_or_zero(scale);
  Row<N> codes;
  for (int i = 0; i < Row<N>::kVectors; ++i) codes.v[i] = to_code((x.v[i] + min) * inverse, low, high);
  return codes;
}

}  // namespace candor::quant::CANDOR_QUANT_ISA
