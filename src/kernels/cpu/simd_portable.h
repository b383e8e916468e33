// Vectors as arrays: what every other instruction set must equal. Fused multiply-adds are fmaf.
#pragma once

#include <cstdint>

#include "formats/half.h"

namespace candor::cpu::CANDOR_ISA {

inline constexpr int kTileRows = 4;  ///< rows of a matrix-product tile
inline constexpr int kIntegerTileRows = 2;

struct F32x16 {
  float lane[16];
};
struct I32x16 {
  std::int32_t lane[16];
};
struct Mask16 {
  bool lane[16];
};
struct I8x64 {
  std::int8_t byte[64];
};
struct I16x32 {
  std::int16_t element[32];
};

// Operations on bytes stay functions: 64 lanes, unrolled wherever they are used, take minutes to compile.
#define CANDOR_OUTLINE __attribute__((noinline)) inline

template <typename V, typename F>
CANDOR_INLINE V make_lanes(F&& f) {
  V v;
  for (int i = 0; i < 16; ++i) v.lane[i] = f(i);
  return v;
}

// ---- 32-bit floats
CANDOR_INLINE F32x16 load(const float* p) {
  return load_scalar<F32x16>(p);
}
CANDOR_INLINE void store(float* p, F32x16 v) {
  __builtin_memcpy(p, &v, sizeof v);
}
CANDOR_INLINE F32x16 broadcast(float x) {
  return make_lanes<F32x16>([&](int) { return x; });
}
CANDOR_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i] + b.lane[i]; });
}
CANDOR_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i] - b.lane[i]; });
}
CANDOR_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i] * b.lane[i]; });
}
CANDOR_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i] / b.lane[i]; });
}
/// a · b + c, rounded once.
CANDOR_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return make_lanes<F32x16>([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}
CANDOR_INLINE F32x16 sqrt(F32x16 a) {
  return make_lanes<F32x16>([&](int i) { return __builtin_sqrtf(a.lane[i]); });
}
/// a < b ? a : b, so b where either is NaN.
CANDOR_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
/// a > b ? a : b, so b where either is NaN.
CANDOR_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
CANDOR_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return make_lanes<Mask16>([&](int i) { return a.lane[i] < b.lane[i]; });
}
/// Lanes first … last - 1.
CANDOR_INLINE Mask16 lanes_between(int first, int last) {
  return make_lanes<Mask16>([&](int i) { return first <= i && i < last; });
}
CANDOR_INLINE F32x16 select(Mask16 mask, F32x16 yes, F32x16 no) {
  return make_lanes<F32x16>([&](int i) { return mask.lane[i] ? yes.lane[i] : no.lane[i]; });
}
/// Lanes 2i and 2i + 1 exchanged.
CANDOR_INLINE F32x16 swap_pairs(F32x16 a) {
  return make_lanes<F32x16>([&](int i) { return a.lane[i ^ 1]; });
}
/// Folds halves: lane i with i + 8, then i + 4, i + 2, i + 1.
CANDOR_INLINE float reduce_add(F32x16 v) {
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) v.lane[i] = v.lane[i] + v.lane[i + width];
  return v.lane[0];
}
CANDOR_INLINE float reduce_max(F32x16 v) {
  for (int width = 8; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) v.lane[i] = v.lane[i] > v.lane[i + width] ? v.lane[i] : v.lane[i + width];
  return v.lane[0];
}

// ---- 32-bit integers, wrapping
CANDOR_INLINE I32x16 load(const std::int32_t* p) {
  return load_scalar<I32x16>(p);
}
CANDOR_INLINE I32x16 broadcast(std::int32_t x) {
  return make_lanes<I32x16>([&](int) { return x; });
}
CANDOR_INLINE std::int32_t wrap(std::uint32_t x) {
  return static_cast<std::int32_t>(x);
}
CANDOR_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return make_lanes<I32x16>(
      [&](int i) { return wrap(static_cast<std::uint32_t>(a.lane[i]) + static_cast<std::uint32_t>(b.lane[i])); });
}
CANDOR_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return make_lanes<I32x16>(
      [&](int i) { return wrap(static_cast<std::uint32_t>(a.lane[i]) - static_cast<std::uint32_t>(b.lane[i])); });
}
CANDOR_INLINE I32x16 operator&(I32x16 a, I32x16 b) {
  return make_lanes<I32x16>([&](int i) { return a.lane[i] & b.lane[i]; });
}
CANDOR_INLINE I32x16 operator|(I32x16 a, I32x16 b) {
  return make_lanes<I32x16>([&](int i) { return a.lane[i] | b.lane[i]; });
}
template <int N>
CANDOR_INLINE I32x16 shift_left(I32x16 a) {
  return make_lanes<I32x16>([&](int i) { return wrap(static_cast<std::uint32_t>(a.lane[i]) << N); });
}
template <int N>
CANDOR_INLINE I32x16 shift_right(I32x16 a) {  // keeps the sign
  return make_lanes<I32x16>([&](int i) { return a.lane[i] >> N; });
}
CANDOR_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return make_lanes<I32x16>([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
CANDOR_INLINE std::int32_t reduce_add(I32x16 v) {
  std::uint32_t sum = 0;
  for (const std::int32_t x : v.lane) sum += static_cast<std::uint32_t>(x);
  return wrap(sum);
}
CANDOR_INLINE std::int32_t reduce_max(I32x16 v) {
  std::int32_t most = v.lane[0];
  for (const std::int32_t x : v.lane) most = x > most ? x : most;
  return most;
}

// ---- conversions
CANDOR_INLINE I32x16 bits(F32x16 v) {
  return bit_cast_to<I32x16>(v);
}
CANDOR_INLINE F32x16 from_bits(I32x16 v) {
  return bit_cast_to<F32x16>(v);
}
/// Rounded to nearest even.
CANDOR_INLINE F32x16 to_f32(I32x16 v) {
  return make_lanes<F32x16>([&](int i) { return static_cast<float>(v.lane[i]); });
}
/// Of whole numbers within int32; of others some value.
CANDOR_INLINE I32x16 to_i32(F32x16 v) {
  return make_lanes<I32x16>([&](int i) {
    return v.lane[i] >= -2147483648.0f && v.lane[i] < 2147483648.0f ? static_cast<std::int32_t>(v.lane[i]) : 0;
  });
}
/// Of values within int8.
CANDOR_INLINE void store_i8(std::int8_t* p, I32x16 v) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(v.lane[i]);
}

CANDOR_OUTLINE F32x16 load_f16(const void* p) {
  return make_lanes<F32x16>(
      [&](int i) { return f16_to_f32(load_scalar<std::uint16_t>(static_cast<const char*>(p) + 2 * i)); });
}
CANDOR_OUTLINE void store_f16(void* p, F32x16 v) {
  std::uint16_t halves[16];
  for (int i = 0; i < 16; ++i) halves[i] = f32_to_f16(v.lane[i]);
  __builtin_memcpy(p, halves, sizeof halves);
}
CANDOR_INLINE F32x16 load_bf16(const void* p) {
  return make_lanes<F32x16>([&](int i) {
    const std::uint32_t high = load_scalar<std::uint16_t>(static_cast<const char*>(p) + 2 * i);
    return bit_cast_to<float>(high << 16);
  });
}
/// Makes the compiler keep a loaded vector in a register instead of loading it again at each use.
CANDOR_INLINE void keep_in_register(F32x16&) {}

// ---- bytes
CANDOR_INLINE I8x64 load_i8(const void* p) {
  return load_scalar<I8x64>(p);
}
CANDOR_INLINE void store(void* p, I8x64 v) {
  __builtin_memcpy(p, &v, sizeof v);
}
template <typename F>
CANDOR_INLINE I8x64 make_bytes(F&& f) {
  I8x64 v;
  for (int i = 0; i < 64; ++i) v.byte[i] = static_cast<std::int8_t>(f(i));
  return v;
}
CANDOR_OUTLINE I8x64 operator|(I8x64 a, I8x64 b) {
  return make_bytes([&](int i) { return a.byte[i] | b.byte[i]; });
}
/// Bits First … First + Count - 1 of every byte, moved to bit To.
template <int First, int Count, int To = 0>
CANDOR_OUTLINE I8x64 bit_field(I8x64 v) {
  return make_bytes([&](int i) { return (static_cast<std::uint8_t>(v.byte[i]) >> First & ((1 << Count) - 1)) << To; });
}
/// The four bytes at p in every lane.
CANDOR_OUTLINE I8x64 broadcast4(const std::int8_t* p) {
  return make_bytes([&](int i) { return p[i % 4]; });
}

// ---- dot products of int8, exact: acc[lane] + Σ w[4·lane + j] · a[4·lane + j]
struct SignedWeights {
  I8x64 w;
};
CANDOR_INLINE SignedWeights prepare_signed(I8x64 w) {
  return {w};
}
/// What an accumulator of signed products starts from, given the sum of all activations that will be multiplied.
CANDOR_INLINE I32x16 start_signed(std::int32_t) {
  return broadcast(0);
}
/// Weights are any int8 and activations at least -127.
CANDOR_OUTLINE I32x16 dot_signed(I32x16 acc, SignedWeights w, I8x64 a) {
  return make_lanes<I32x16>([&](int i) {
    std::int32_t sum = acc.lane[i];
    for (int j = 4 * i; j < 4 * i + 4; ++j) sum += std::int32_t{w.w.byte[j]} * std::int32_t{a.byte[j]};
    return sum;
  });
}

/// A sum of products of weights 0 … MaxWeight with activations -127 … 127, of which at most
/// partial_groups(MaxWeight) may be added before it is used.
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
  return {dot_signed(partial.sum, {w}, a)};
}
CANDOR_INLINE I32x16 add_partial(I32x16 acc, PartialDot partial) {
  return acc + partial.sum;
}

// ---- 16-bit pairs, for block scales held in integers
CANDOR_OUTLINE I16x32 load_i8_as_i16(const void* p) {
  I16x32 v;
  for (int i = 0; i < 32; ++i) v.element[i] = load_scalar<std::int8_t>(static_cast<const char*>(p) + i);
  return v;
}
/// The two elements at p in every lane.
CANDOR_OUTLINE I16x32 broadcast_pair(const std::int16_t* p) {
  I16x32 v;
  for (int i = 0; i < 32; ++i) v.element[i] = p[i % 2];
  return v;
}
/// acc + v[2·lane] · w[2·lane] + v[2·lane + 1] · w[2·lane + 1]
CANDOR_OUTLINE I32x16 madd(I32x16 acc, I16x32 v, I16x32 w) {
  return make_lanes<I32x16>([&](int i) {
    return acc.lane[i] + v.element[2 * i] * w.element[2 * i] + v.element[2 * i + 1] * w.element[2 * i + 1];
  });
}
/// One integer scale a lane.
struct LaneScale {
  I32x16 scale;
};
template <int Half>
CANDOR_OUTLINE LaneScale lane_scale(I16x32 pairs) {
  return {make_lanes<I32x16>([&](int i) { return std::int32_t{pairs.element[2 * i + Half]}; })};
}
CANDOR_OUTLINE I32x16 add_scaled(I32x16 acc, PartialDot partial, LaneScale s) {
  return make_lanes<I32x16>([&](int i) { return acc.lane[i] + partial.sum.lane[i] * s.scale.lane[i]; });
}

}  // namespace candor::cpu::CANDOR_ISA
