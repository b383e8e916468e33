// Vectors with AVX-512 (F, BW, DQ, VL and VNNI): one register. simd_portable.h says what each operation computes.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace candor::cpu::CANDOR_ISA {

inline constexpr int kTileRows = 12;  ///< of 32 registers; fewer would not cover the latency of two multiply-add ports
inline constexpr int kIntegerTileRows = 8;

struct F32x16 {
  __m512 v;
};
struct I32x16 {
  __m512i v;
};
struct Mask16 {
  __mmask16 m;
};
struct I8x64 {
  __m512i v;
};
struct I16x32 {
  __m512i v;
};

// ---- 32-bit floats
CANDOR_INLINE F32x16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
CANDOR_INLINE void store(float* p, F32x16 a) {
  _mm512_storeu_ps(p, a.v);
}
CANDOR_INLINE F32x16 broadcast(float x) {
  return {_mm512_set1_ps(x)};
}
CANDOR_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
CANDOR_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
CANDOR_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
CANDOR_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
CANDOR_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
CANDOR_INLINE F32x16 sqrt(F32x16 a) {
  return {_mm512_sqrt_ps(a.v)};
}
CANDOR_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
CANDOR_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
CANDOR_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
CANDOR_INLINE Mask16 lanes_between(int first, int last) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __mmask16 from = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(first));
  return {_mm512_mask_cmplt_epi32_mask(from, lane, _mm512_set1_epi32(last))};
}
CANDOR_INLINE F32x16 select(Mask16 mask, F32x16 yes, F32x16 no) {
  return {_mm512_mask_blend_ps(mask.m, no.v, yes.v)};
}
CANDOR_INLINE F32x16 swap_pairs(F32x16 a) {
  return {_mm512_permute_ps(a.v, 0xb1)};
}
CANDOR_INLINE __m256 low_half(F32x16 a) {
  return _mm512_castps512_ps256(a.v);
}
CANDOR_INLINE __m256 high_half(F32x16 a) {
  return _mm256_castsi256_ps(_mm512_extracti32x8_epi32(_mm512_castps_si512(a.v), 1));
}
CANDOR_INLINE float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(low_half(a), high_half(a));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
CANDOR_INLINE float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(low_half(a), high_half(a));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// ---- 32-bit integers
CANDOR_INLINE I32x16 load(const std::int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
CANDOR_INLINE I32x16 broadcast(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
CANDOR_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
CANDOR_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
CANDOR_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
CANDOR_INLINE I32x16 operator|(I32x16 a, I32x16 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
template <int N>
CANDOR_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm512_slli_epi32(a.v, N)};
}
template <int N>
CANDOR_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm512_srai_epi32(a.v, N)};
}
CANDOR_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return {_mm512_max_epi32(a.v, b.v)};
}
CANDOR_INLINE std::int32_t reduce_add(I32x16 a) {
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(a.v), _mm512_extracti32x8_epi32(a.v, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}
CANDOR_INLINE std::int32_t reduce_max(I32x16 a) {
  const __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(a.v), _mm512_extracti32x8_epi32(a.v, 1));
  const __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

// ---- conversions
CANDOR_INLINE I32x16 bits(F32x16 a) {
  return {_mm512_castps_si512(a.v)};
}
CANDOR_INLINE F32x16 from_bits(I32x16 a) {
  return {_mm512_castsi512_ps(a.v)};
}
CANDOR_INLINE F32x16 to_f32(I32x16 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
CANDOR_INLINE I32x16 to_i32(F32x16 a) {
  return {_mm512_cvtps_epi32(a.v)};
}
CANDOR_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  const __m128i packed = _mm512_cvtsepi32_epi8(a.v);
  __builtin_memcpy(p, &packed, sizeof packed);
}
CANDOR_INLINE __m256i load_256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
CANDOR_INLINE F32x16 load_f16(const void* p) {
  return {_mm512_cvtph_ps(load_256(p))};
}
CANDOR_INLINE void store_f16(void* p, F32x16 a) {
  const __m256i halves = _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(p, &halves, sizeof halves);
}
CANDOR_INLINE F32x16 load_bf16(const void* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_256(p)), 16))};
}
CANDOR_INLINE void keep_in_register(F32x16& a) {
  asm("" : "+v"(a.v));
}

// ---- bytes
CANDOR_INLINE I8x64 load_i8(const void* p) {
  return {_mm512_loadu_si512(p)};
}
CANDOR_INLINE void store(void* p, I8x64 a) {
  _mm512_storeu_si512(p, a.v);
}
CANDOR_INLINE I8x64 operator|(I8x64 a, I8x64 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
template <int First, int Count, int To = 0>
CANDOR_INLINE I8x64 bit_field(I8x64 a) {
  __m512i x = a.v;
  if constexpr (First > To) x = _mm512_srli_epi16(x, First - To);
  if constexpr (First < To) x = _mm512_slli_epi16(x, To - First);
  return {_mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(((1 << Count) - 1) << To)))};
}
CANDOR_INLINE I8x64 broadcast4(const std::int8_t* p) {
  return {_mm512_set1_epi32(load_scalar<std::int32_t>(p))};
}

// ---- dot products of int8. vpdpbusd multiplies unsigned by signed bytes into 32 bits without saturating: the weights
// are taken as w + 128, and 128 times the sum of the activations is what the accumulator starts below zero with.
struct SignedWeights {
  __m512i offset;
};
CANDOR_INLINE SignedWeights prepare_signed(I8x64 w) {
  return {_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))};
}
CANDOR_INLINE I32x16 start_signed(std::int32_t activation_sum) {
  return broadcast(-128 * activation_sum);
}
CANDOR_INLINE I32x16 dot_signed(I32x16 acc, SignedWeights w, I8x64 a) {
  return {_mm512_dpbusd_epi32(acc.v, w.offset, a.v)};
}

struct PartialDot {
  I32x16 sum;
};
constexpr int partial_groups(int /*max_weight*/) {
  return 1 << 10;
}
CANDOR_INLINE PartialDot partial_zero() {
  return {broadcast(0)};
}
CANDOR_INLINE PartialDot dot_unsigned(PartialDot partial, I8x64 w, I8x64 a) {
  return {{_mm512_dpbusd_epi32(partial.sum.v, w.v, a.v)}};
}
CANDOR_INLINE I32x16 add_partial(I32x16 acc, PartialDot partial) {
  return acc + partial.sum;
}

// ---- 16-bit pairs
CANDOR_INLINE I16x32 load_i8_as_i16(const void* p) {
  return {_mm512_cvtepi8_epi16(load_256(p))};
}
CANDOR_INLINE I16x32 broadcast_pair(const std::int16_t* p) {
  return {_mm512_set1_epi32(load_scalar<std::int32_t>(p))};
}
CANDOR_INLINE I32x16 madd(I32x16 acc, I16x32 v, I16x32 w) {
  return {_mm512_dpwssd_epi32(acc.v, v.v, w.v)};
}
struct LaneScale {
  I32x16 scale;
};
template <int Half>
CANDOR_INLINE LaneScale lane_scale(I16x32 pairs) {
  const I32x16 lanes{pairs.v};
  if constexpr (Half == 0) return {shift_right<16>(shift_left<16>(lanes))};
  return {shift_right<16>(lanes)};
}
CANDOR_INLINE I32x16 add_scaled(I32x16 acc, PartialDot partial, LaneScale s) {
  return {_mm512_add_epi32(acc.v, _mm512_mullo_epi32(partial.sum.v, s.scale.v))};
}

}  // namespace candor::cpu::CANDOR_ISA
