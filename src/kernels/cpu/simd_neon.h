// Vectors with NEON (AArch64): four registers of 128 bits. simd_portable.h says what each operation computes.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace candor::cpu::CANDOR_ISA {

inline constexpr int kTileRows = 6;  ///< 6 × 16 accumulators take 24 of 32 registers
inline constexpr int kIntegerTileRows = 2;

struct F32x16 {
  float32x4_t r[4];
};
struct I32x16 {
  int32x4_t r[4];
};
struct Mask16 {
  uint32x4_t r[4];
};
struct I8x64 {
  int8x16_t r[4];
};
struct I16x32 {
  int16x8_t r[4];
};

/// A vector whose four registers are f(0), …, f(3).
template <typename V, typename F>
CANDOR_INLINE V make_registers(F&& f) {
  return {f(0), f(1), f(2), f(3)};
}

// ---- 32-bit floats
CANDOR_INLINE F32x16 load(const float* p) {
  return make_registers<F32x16>([&](int i) { return vld1q_f32(p + 4 * i); });
}
CANDOR_INLINE void store(float* p, F32x16 v) {
  unroll<4>([&](auto i) { vst1q_f32(p + 4 * i, v.r[i]); });
}
CANDOR_INLINE F32x16 broadcast(float x) {
  return make_registers<F32x16>([&](int) { return vdupq_n_f32(x); });
}
CANDOR_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return make_registers<F32x16>([&](int i) { return vaddq_f32(a.r[i], b.r[i]); });
}
CANDOR_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return make_registers<F32x16>([&](int i) { return vsubq_f32(a.r[i], b.r[i]); });
}
CANDOR_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return make_registers<F32x16>([&](int i) { return vmulq_f32(a.r[i], b.r[i]); });
}
CANDOR_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return make_registers<F32x16>([&](int i) { return vdivq_f32(a.r[i], b.r[i]); });
}
CANDOR_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return make_registers<F32x16>([&](int i) { return vfmaq_f32(c.r[i], a.r[i], b.r[i]); });
}
CANDOR_INLINE F32x16 sqrt(F32x16 a) {
  return make_registers<F32x16>([&](int i) { return vsqrtq_f32(a.r[i]); });
}
CANDOR_INLINE float32x4_t min_or_second(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcltq_f32(a, b), a, b);
}
CANDOR_INLINE float32x4_t max_or_second(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
CANDOR_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return make_registers<F32x16>([&](int i) { return min_or_second(a.r[i], b.r[i]); });
}
CANDOR_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return make_registers<F32x16>([&](int i) { return max_or_second(a.r[i], b.r[i]); });
}
CANDOR_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return make_registers<Mask16>([&](int i) { return vcltq_f32(a.r[i], b.r[i]); });
}
CANDOR_INLINE Mask16 lanes_between(int first, int last) {
  return make_registers<Mask16>([&](int i) {
    const int32x4_t lane = vaddq_s32(vdupq_n_s32(4 * i), int32x4_t{0, 1, 2, 3});
    return vandq_u32(vcgeq_s32(lane, vdupq_n_s32(first)), vcltq_s32(lane, vdupq_n_s32(last)));
  });
}
CANDOR_INLINE F32x16 select(Mask16 mask, F32x16 yes, F32x16 no) {
  return make_registers<F32x16>([&](int i) { return vbslq_f32(mask.r[i], yes.r[i], no.r[i]); });
}
CANDOR_INLINE F32x16 swap_pairs(F32x16 a) {
  return make_registers<F32x16>([&](int i) { return vrev64q_f32(a.r[i]); });
}
CANDOR_INLINE float reduce_add(F32x16 v) {
  const float32x4_t four = vaddq_f32(vaddq_f32(v.r[0], v.r[2]), vaddq_f32(v.r[1], v.r[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
CANDOR_INLINE float reduce_max(F32x16 v) {
  const float32x4_t four = max_or_second(max_or_second(v.r[0], v.r[2]), max_or_second(v.r[1], v.r[3]));
  const float a = vgetq_lane_f32(four, 0), b = vgetq_lane_f32(four, 1);
  const float c = vgetq_lane_f32(four, 2), d = vgetq_lane_f32(four, 3);
  const float even = a > c ? a : c, odd = b > d ? b : d;
  return even > odd ? even : odd;
}

// ---- 32-bit integers
CANDOR_INLINE I32x16 load(const std::int32_t* p) {
  return make_registers<I32x16>([&](int i) { return vld1q_s32(p + 4 * i); });
}
CANDOR_INLINE I32x16 broadcast(std::int32_t x) {
  return make_registers<I32x16>([&](int) { return vdupq_n_s32(x); });
}
CANDOR_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return make_registers<I32x16>([&](int i) { return vaddq_s32(a.r[i], b.r[i]); });
}
CANDOR_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return make_registers<I32x16>([&](int i) { return vsubq_s32(a.r[i], b.r[i]); });
}
CANDOR_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return make_registers<I32x16>([&](int i) { return vandq_s32(a.r[i], b.r[i]); });
}
CANDOR_INLINE I32x16 operator|(I32x16 a, I32x16 b) {
  return make_registers<I32x16>([&](int i) { return vorrq_s32(a.r[i], b.r[i]); });
}
template <int N>
CANDOR_INLINE I32x16 shift_left(I32x16 a) {
  return make_registers<I32x16>([&](int i) { return vshlq_n_s32(a.r[i], N); });
}
template <int N>
CANDOR_INLINE I32x16 shift_right(I32x16 a) {
  return make_registers<I32x16>([&](int i) { return vshrq_n_s32(a.r[i], N); });
}
CANDOR_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return make_registers<I32x16>([&](int i) { return vmaxq_s32(a.r[i], b.r[i]); });
}
CANDOR_INLINE std::int32_t reduce_add(I32x16 v) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(v.r[0], v.r[2]), vaddq_s32(v.r[1], v.r[3])));
}
CANDOR_INLINE std::int32_t reduce_max(I32x16 v) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(v.r[0], v.r[2]), vmaxq_s32(v.r[1], v.r[3])));
}

// ---- conversions
CANDOR_INLINE I32x16 bits(F32x16 v) {
  return make_registers<I32x16>([&](int i) { return vreinterpretq_s32_f32(v.r[i]); });
}
CANDOR_INLINE F32x16 from_bits(I32x16 v) {
  return make_registers<F32x16>([&](int i) { return vreinterpretq_f32_s32(v.r[i]); });
}
CANDOR_INLINE F32x16 to_f32(I32x16 v) {
  return make_registers<F32x16>([&](int i) { return vcvtq_f32_s32(v.r[i]); });
}
CANDOR_INLINE I32x16 to_i32(F32x16 v) {
  return make_registers<I32x16>([&](int i) { return vcvtnq_s32_f32(v.r[i]); });
}
CANDOR_INLINE void store_i8(std::int8_t* p, I32x16 v) {
  const int16x8_t low = vcombine_s16(vmovn_s32(v.r[0]), vmovn_s32(v.r[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(v.r[2]), vmovn_s32(v.r[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
CANDOR_INLINE F32x16 load_f16(const void* p) {
  return make_registers<F32x16>([&](int i) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const std::uint16_t*>(p) + 4 * i)));
  });
}
CANDOR_INLINE void store_f16(void* p, F32x16 v) {
  unroll<4>(
      [&](auto i) { vst1_u16(static_cast<std::uint16_t*>(p) + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(v.r[i]))); });
}
CANDOR_INLINE F32x16 load_bf16(const void* p) {
  return make_registers<F32x16>([&](int i) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(static_cast<const std::uint16_t*>(p) + 4 * i), 16));
  });
}
CANDOR_INLINE void keep_in_register(F32x16& v) {
  asm("" : "+w"(v.r[0]), "+w"(v.r[1]), "+w"(v.r[2]), "+w"(v.r[3]));
}

// ---- bytes
CANDOR_INLINE I8x64 load_i8(const void* p) {
  return make_registers<I8x64>([&](int i) { return vld1q_s8(static_cast<const std::int8_t*>(p) + 16 * i); });
}
CANDOR_INLINE void store(void* p, I8x64 v) {
  unroll<4>([&](auto i) { vst1q_s8(static_cast<std::int8_t*>(p) + 16 * i, v.r[i]); });
}
CANDOR_INLINE I8x64 operator|(I8x64 a, I8x64 b) {
  return make_registers<I8x64>([&](int i) { return vorrq_s8(a.r[i], b.r[i]); });
}
template <int First, int Count, int To = 0>
CANDOR_INLINE I8x64 bit_field(I8x64 v) {
  return make_registers<I8x64>([&](int i) {
    uint8x16_t x = vreinterpretq_u8_s8(v.r[i]);
    if constexpr (First > To) x = vshrq_n_u8(x, First - To);
    if constexpr (First < To) x = vshlq_n_u8(x, To - First);
    return vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(((1 << Count) - 1) << To)));
  });
}
CANDOR_INLINE I8x64 broadcast4(const std::int8_t* p) {
  const int8x16_t v = vreinterpretq_s8_s32(vdupq_n_s32(load_scalar<std::int32_t>(p)));
  return {v, v, v, v};
}

// ---- dot products of int8. Without the dot-product extension: products in 16 bits, added in pairs (at most
// 2 · 128 · 127), then pairs of those in 32 bits.
struct SignedWeights {
  I8x64 w;
};
CANDOR_INLINE SignedWeights prepare_signed(I8x64 w) {
  return {w};
}
CANDOR_INLINE I32x16 start_signed(std::int32_t) {
  return broadcast(0);
}
CANDOR_INLINE I32x16 dot_signed(I32x16 acc, SignedWeights w, I8x64 a) {
  return make_registers<I32x16>([&](int i) {
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(acc.r[i], w.w.r[i], a.r[i]);
#else
    const int16x8_t low = vmull_s8(vget_low_s8(w.w.r[i]), vget_low_s8(a.r[i]));
    const int16x8_t high = vmull_high_s8(w.w.r[i], a.r[i]);
    return vpadalq_s16(acc.r[i], vpaddq_s16(low, high));
#endif
  });
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
  return {dot_signed(partial.sum, {w}, a)};  // unsigned weights are below 64
}
CANDOR_INLINE I32x16 add_partial(I32x16 acc, PartialDot partial) {
  return acc + partial.sum;
}

// ---- 16-bit pairs
CANDOR_INLINE I16x32 load_i8_as_i16(const void* p) {
  return make_registers<I16x32>([&](int i) { return vmovl_s8(vld1_s8(static_cast<const std::int8_t*>(p) + 8 * i)); });
}
CANDOR_INLINE I16x32 broadcast_pair(const std::int16_t* p) {
  const int16x8_t v = vreinterpretq_s16_s32(vdupq_n_s32(load_scalar<std::int32_t>(p)));
  return {v, v, v, v};
}
CANDOR_INLINE I32x16 madd(I32x16 acc, I16x32 v, I16x32 w) {
  return make_registers<I32x16>([&](int i) {
    const int32x4_t low = vmull_s16(vget_low_s16(v.r[i]), vget_low_s16(w.r[i]));
    const int32x4_t high = vmull_high_s16(v.r[i], w.r[i]);
    return vaddq_s32(acc.r[i], vpaddq_s32(low, high));
  });
}
struct LaneScale {
  I32x16 scale;
};
template <int Half>
CANDOR_INLINE LaneScale lane_scale(I16x32 pairs) {
  const I32x16 lanes = make_registers<I32x16>([&](int i) { return vreinterpretq_s32_s16(pairs.r[i]); });
  if constexpr (Half == 0) return {shift_right<16>(shift_left<16>(lanes))};
  return {shift_right<16>(lanes)};
}
CANDOR_INLINE I32x16 add_scaled(I32x16 acc, PartialDot partial, LaneScale s) {
  return make_registers<I32x16>([&](int i) { return vmlaq_s32(acc.r[i], partial.sum.r[i], s.scale.r[i]); });
}

}  // namespace candor::cpu::CANDOR_ISA
