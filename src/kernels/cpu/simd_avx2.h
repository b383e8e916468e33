// Vectors with AVX2, FMA and F16C: two registers of 256 bits. simd_portable.h says what each operation computes.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace candor::cpu::CANDOR_ISA {

inline constexpr int kTileRows = 6;  ///< 6 × 16 accumulators take 12 of 16 registers
inline constexpr int kIntegerTileRows = 4;

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};
struct Mask16 {
  __m256 lo, hi;
};
struct I8x64 {
  __m256i lo, hi;
};
struct I16x32 {
  __m256i lo, hi;
};

// ---- 32-bit floats
CANDOR_INLINE F32x16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
CANDOR_INLINE void store(float* p, F32x16 v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}
CANDOR_INLINE F32x16 broadcast(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
CANDOR_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
CANDOR_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
CANDOR_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
CANDOR_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
CANDOR_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
CANDOR_INLINE F32x16 sqrt(F32x16 a) {
  return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)};
}
CANDOR_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
CANDOR_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
CANDOR_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
CANDOR_INLINE Mask16 lanes_between(int first, int last) {
  const __m256i below = _mm256_set1_epi32(first - 1);
  const __m256i end = _mm256_set1_epi32(last);
  const auto inside = [&](__m256i lane) CANDOR_INLINE_LAMBDA {
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(lane, below), _mm256_cmpgt_epi32(end, lane)));
  };
  return {inside(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)), inside(_mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))};
}
CANDOR_INLINE F32x16 select(Mask16 mask, F32x16 yes, F32x16 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, mask.lo), _mm256_blendv_ps(no.hi, yes.hi, mask.hi)};
}
CANDOR_INLINE F32x16 swap_pairs(F32x16 a) {
  return {_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)};
}
CANDOR_INLINE float reduce_add(F32x16 v) {
  const __m256 eight = _mm256_add_ps(v.lo, v.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
CANDOR_INLINE float reduce_max(F32x16 v) {
  const __m256 eight = _mm256_max_ps(v.lo, v.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// ---- 32-bit integers
CANDOR_INLINE __m256i load_256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
CANDOR_INLINE __m128i load_128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
CANDOR_INLINE I32x16 load(const std::int32_t* p) {
  return {load_256(p), load_256(p + 8)};
}
CANDOR_INLINE I32x16 broadcast(std::int32_t x) {
  const __m256i v = _mm256_set1_epi32(x);
  return {v, v};
}
CANDOR_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
CANDOR_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
CANDOR_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
CANDOR_INLINE I32x16 operator|(I32x16 a, I32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int N>
CANDOR_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, N), _mm256_slli_epi32(a.hi, N)};
}
template <int N>
CANDOR_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, N), _mm256_srai_epi32(a.hi, N)};
}
CANDOR_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
CANDOR_INLINE std::int32_t reduce_add(I32x16 v) {
  const __m256i eight = _mm256_add_epi32(v.lo, v.hi);
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
CANDOR_INLINE std::int32_t reduce_max(I32x16 v) {
  const __m256i eight = _mm256_max_epi32(v.lo, v.hi);
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

// ---- conversions
CANDOR_INLINE I32x16 bits(F32x16 v) {
  return {_mm256_castps_si256(v.lo), _mm256_castps_si256(v.hi)};
}
CANDOR_INLINE F32x16 from_bits(I32x16 v) {
  return {_mm256_castsi256_ps(v.lo), _mm256_castsi256_ps(v.hi)};
}
CANDOR_INLINE F32x16 to_f32(I32x16 v) {
  return {_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)};
}
CANDOR_INLINE I32x16 to_i32(F32x16 v) {
  return {_mm256_cvtps_epi32(v.lo), _mm256_cvtps_epi32(v.hi)};
}
CANDOR_INLINE void store_i8(std::int8_t* p, I32x16 v) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.lo, v.hi), 0xd8);
  const __m128i packed = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  __builtin_memcpy(p, &packed, sizeof packed);
}
CANDOR_INLINE F32x16 load_f16(const void* p) {
  return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(static_cast<const char*>(p) + 16))};
}
CANDOR_INLINE void store_f16(void* p, F32x16 v) {
  const __m128i lo = _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m128i hi = _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(p, &lo, sizeof lo);
  __builtin_memcpy(static_cast<char*>(p) + 16, &hi, sizeof hi);
}
CANDOR_INLINE F32x16 load_bf16(const void* p) {
  const auto widen = [](__m128i halves) CANDOR_INLINE_LAMBDA {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  };
  return {widen(load_128(p)), widen(load_128(static_cast<const char*>(p) + 16))};
}
CANDOR_INLINE void keep_in_register(F32x16& v) {
  asm("" : "+x"(v.lo), "+x"(v.hi));
}

// ---- bytes
CANDOR_INLINE I8x64 load_i8(const void* p) {
  return {load_256(p), load_256(static_cast<const char*>(p) + 32)};
}
CANDOR_INLINE void store(void* p, I8x64 v) {
  __builtin_memcpy(p, &v, sizeof v);
}
CANDOR_INLINE I8x64 operator|(I8x64 a, I8x64 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int First, int Count, int To = 0>
CANDOR_INLINE I8x64 bit_field(I8x64 v) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(((1 << Count) - 1) << To));
  const auto field = [&](__m256i x) CANDOR_INLINE_LAMBDA {
    if constexpr (First > To) x = _mm256_srli_epi16(x, First - To);
    if constexpr (First < To) x = _mm256_slli_epi16(x, To - First);
    return _mm256_and_si256(x, mask);
  };
  return {field(v.lo), field(v.hi)};
}
CANDOR_INLINE I8x64 broadcast4(const std::int8_t* p) {
  const __m256i v = _mm256_set1_epi32(load_scalar<std::int32_t>(p));
  return {v, v};
}

// ---- dot products of int8. maddubs multiplies unsigned by signed bytes and saturates sums of pairs at 16 bits: |w| up
// to 128 times 127 twice stays below, the activation carrying the weight's sign (-128 has no positive int8, but 128 is
// an unsigned byte).
struct SignedWeights {
  I8x64 magnitude, w;
};
CANDOR_INLINE SignedWeights prepare_signed(I8x64 w) {
  return {{_mm256_abs_epi8(w.lo), _mm256_abs_epi8(w.hi)}, w};
}
CANDOR_INLINE I32x16 start_signed(std::int32_t) {
  return broadcast(0);
}
CANDOR_INLINE I32x16 dot_signed(I32x16 acc, SignedWeights w, I8x64 a) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i lo = _mm256_maddubs_epi16(w.magnitude.lo, _mm256_sign_epi8(a.lo, w.w.lo));
  const __m256i hi = _mm256_maddubs_epi16(w.magnitude.hi, _mm256_sign_epi8(a.hi, w.w.hi));
  return {_mm256_add_epi32(acc.lo, _mm256_madd_epi16(lo, ones)), _mm256_add_epi32(acc.hi, _mm256_madd_epi16(hi, ones))};
}

/// Sums of pairs in 16 bits.
struct PartialDot {
  I16x32 pairs;
};
constexpr int partial_groups(int max_weight) {
  return 32767 / (2 * 127 * max_weight);
}
CANDOR_INLINE PartialDot partial_zero() {
  return {{_mm256_setzero_si256(), _mm256_setzero_si256()}};
}
CANDOR_INLINE PartialDot dot_unsigned(PartialDot partial, I8x64 w, I8x64 a) {
  return {{_mm256_add_epi16(partial.pairs.lo, _mm256_maddubs_epi16(w.lo, a.lo)),
           _mm256_add_epi16(partial.pairs.hi, _mm256_maddubs_epi16(w.hi, a.hi))}};
}
CANDOR_INLINE I32x16 madd(I32x16 acc, I16x32 v, I16x32 w) {
  return {_mm256_add_epi32(acc.lo, _mm256_madd_epi16(v.lo, w.lo)),
          _mm256_add_epi32(acc.hi, _mm256_madd_epi16(v.hi, w.hi))};
}
CANDOR_INLINE I32x16 add_partial(I32x16 acc, PartialDot partial) {
  const __m256i ones = _mm256_set1_epi16(1);
  return madd(acc, partial.pairs, {ones, ones});
}

// ---- 16-bit pairs
CANDOR_INLINE I16x32 load_i8_as_i16(const void* p) {
  return {_mm256_cvtepi8_epi16(load_128(p)), _mm256_cvtepi8_epi16(load_128(static_cast<const char*>(p) + 16))};
}
CANDOR_INLINE I16x32 broadcast_pair(const std::int16_t* p) {
  const __m256i v = _mm256_set1_epi32(load_scalar<std::int32_t>(p));
  return {v, v};
}
/// The scale in both halves of a lane.
struct LaneScale {
  I16x32 twice;
};
template <int Half>
CANDOR_INLINE LaneScale lane_scale(I16x32 pairs) {
  constexpr int kPick = Half == 0 ? 0xa0 : 0xf5;
  const auto twice = [](__m256i v) CANDOR_INLINE_LAMBDA {
    return _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(v, kPick), kPick);
  };
  return {{twice(pairs.lo), twice(pairs.hi)}};
}
CANDOR_INLINE I32x16 add_scaled(I32x16 acc, PartialDot partial, LaneScale s) {
  return madd(acc, partial.pairs, s.twice);
}

}  // namespace candor::cpu::CANDOR_ISA
