// The vectors kernels are written in. A vector has a fixed number of logical lanes (16 of 32 bits), whatever the width
// of a register: two registers with AVX2, one with AVX-512, four with NEON, an array in portable code. Every operation
// has the same result, bit for bit, on each (NaNs excepted: that a value is NaN is the same, which NaN is not).
// Goals: an expression written here once is the kernel's arithmetic; multiply-adds fuse only where fma() is written.
// Non-goals: a general vector library. Rejected: Highway, whose packaged version (1.0.3) neither fuses on its generic
// targets nor has the int8 dot products; compiler vector extensions, which leave fusing to flags.
//
// Every kernel source is compiled once for each instruction set, with CANDOR_ISA naming it, into a namespace of that
// name. What such a source defines stays in the namespace and is inline only if always_inline: a shared inline function
// compiled with one set's flags could replace the portable copy when the program is linked
// (tests/kernels/cpu/symbols.sh checks).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if !defined(CANDOR_ISA)
#error "kernel sources are compiled once for each instruction set: see src/kernels/cpu/CMakeLists.txt"
#endif

#define CANDOR_INLINE __attribute__((always_inline)) inline
#define CANDOR_INLINE_LAMBDA __attribute__((always_inline))

namespace candor::cpu::CANDOR_ISA {

inline constexpr int kLanes = 16;

/// Calls f(integral_constant<int, 0>), …, f(integral_constant<int, N - 1>): loops over accumulators, which only stay in
/// registers if every index is a constant.
template <int N, typename F>
CANDOR_INLINE void unroll(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) CANDOR_INLINE_LAMBDA {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

/// Calls f(i, j) for each i below N and j below M, j fastest.
template <int N, int M, typename F>
CANDOR_INLINE void unroll(F&& f) {
  unroll<N>([&](auto i) CANDOR_INLINE_LAMBDA { unroll<M>([&](auto j) CANDOR_INLINE_LAMBDA { f(i, j); }); });
}

template <typename To, typename From>
CANDOR_INLINE To bit_cast_to(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <typename T>
CANDOR_INLINE T load_scalar(const void* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

}  // namespace candor::cpu::CANDOR_ISA

// Each of these defines the same names:
//   F32x16, I32x16, Mask16          load, store, broadcast, + - * /, fma, sqrt, min, max, abs, less, select, …
//   I8x64                           64 bytes: lane i owns bytes 4i … 4i + 3
//   I16x32                          lane i owns elements 2i and 2i + 1
//   SignedWeights, PartialDot       operands of the int8 dot products
#if defined(CANDOR_ISA_AVX512)
#include "kernels/cpu/simd_avx512.h"
#elif defined(CANDOR_ISA_AVX2)
#include "kernels/cpu/simd_avx2.h"
#elif defined(CANDOR_ISA_NEON)
#include "kernels/cpu/simd_neon.h"
#else
#include "kernels/cpu/simd_portable.h"
#endif

namespace candor::cpu::CANDOR_ISA {

/// Lanes 0 … count - 1 from memory, the others zero. `count` in [0, 16].
CANDOR_INLINE F32x16 load_first(const float* p, int count) {
  alignas(64) float lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, static_cast<std::size_t>(count) * sizeof(float));
  return load(lanes);
}

/// Stores lanes 0 … count - 1 only.
CANDOR_INLINE void store_first(float* p, F32x16 v, int count) {
  alignas(64) float lanes[kLanes];
  store(lanes, v);
  __builtin_memcpy(p, lanes, static_cast<std::size_t>(count) * sizeof(float));
}

/// Calls f(column, count) for each 16 columns; `count` is 16 but in the last call.
template <typename F>
CANDOR_INLINE void for_each_vector(std::uint32_t cols, F&& f) {
  std::uint32_t i = 0;
  for (; i + kLanes <= cols; i += kLanes) f(i, std::integral_constant<int, kLanes>{});
  if (i < cols) f(i, static_cast<int>(cols - i));
}

// A whole vector or its first lanes: for bodies given to for_each_vector.
CANDOR_INLINE F32x16 load_first(const float* p, std::integral_constant<int, kLanes>) {
  return load(p);
}
CANDOR_INLINE void store_first(float* p, F32x16 v, std::integral_constant<int, kLanes>) {
  store(p, v);
}

}  // namespace candor::cpu::CANDOR_ISA
