// Elementary functions of kernels: the same bits on every instruction set, which libm's are not. Polynomials are
// minimax fits (Remez) made for these intervals; errors are of the approximation, to which about one rounding is added.
#pragma once

#include "kernels/cpu/simd.h"

namespace candor::cpu::CANDOR_ISA {

/// c[0] + c[1] x + … by Horner's rule, one fused multiply-add a step.
template <int N>
CANDOR_INLINE F32x16 polynomial(F32x16 x, const float (&c)[N]) {
  F32x16 sum = broadcast(c[N - 1]);
  unroll<N - 1>([&](auto i) CANDOR_INLINE_LAMBDA { sum = fma(sum, x, broadcast(c[N - 2 - i])); });
  return sum;
}

CANDOR_INLINE F32x16 abs(F32x16 x) {
  return from_bits(bits(x) & broadcast(std::int32_t{0x7fffffff}));
}

/// |magnitude| with the sign of `sign`.
CANDOR_INLINE F32x16 copy_sign(F32x16 magnitude, F32x16 sign) {
  return from_bits((bits(magnitude) & broadcast(std::int32_t{0x7fffffff})) | (bits(sign) & bits(broadcast(-0.0f))));
}

/// The whole number nearest to x, ties to even, for |x| < 2^22.
CANDOR_INLINE F32x16 round_small(F32x16 x) {
  const F32x16 shift = broadcast(0x1.8p23f);
  return (x + shift) - shift;
}

/// 2^n for whole n in [-126, 127].
CANDOR_INLINE F32x16 power_of_two(I32x16 n) {
  return from_bits(shift_left<23>(n + broadcast(std::int32_t{127})));
}

/// e^x. Error 3e-9 relative before rounding; exactly 0 below -104, infinity above 88.73, NaN of NaN.
CANDOR_INLINE F32x16 exp(F32x16 x) {
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits, so that n · kLn2High is exact
  constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  constexpr float kTail[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f, 0x1.6a242cp-10f};
  const F32x16 bounded = min(broadcast(89.0f), max(broadcast(-110.0f), x));
  const F32x16 n = round_small(bounded * broadcast(kLog2e));
  const F32x16 r = fma(n, broadcast(-kLn2Low), fma(n, broadcast(-kLn2High), bounded));
  const F32x16 y = fma(r * r, polynomial(r, kTail), r) + broadcast(1.0f);
  // 2^n in two factors: n goes below -126 for results that are subnormal and to 128 for those that are infinite.
  const I32x16 whole = to_i32(n);
  const I32x16 half = shift_right<1>(whole);
  return y * power_of_two(half) * power_of_two(whole - half);
}

/// tanh x. Error 4e-9 relative before rounding.
CANDOR_INLINE F32x16 tanh(F32x16 x) {
  constexpr float kTail[] = {-0x1.555532p-2f, 0x1.110726p-3f, -0x1.b83c58p-5f, 0x1.522692p-6f, -0x1.75e1a4p-8f};
  const F32x16 a = abs(x);
  const F32x16 square = x * x;
  const F32x16 small = fma(x * square, polynomial(square, kTail), x);
  const F32x16 large = broadcast(1.0f) - broadcast(2.0f) / (exp(a + a) + broadcast(1.0f));
  return select(less(a, broadcast(0.625f)), small, copy_sign(large, x));
}

/// erf x. Error 2e-9 before rounding.
CANDOR_INLINE F32x16 erf(F32x16 x) {
  constexpr float kOdd[] = {0x1.20dd74p+0f, -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f90cp-6f,
                            0x1.5405aep-8f, -0x1.a3f6e8p-11f, 0x1.4969f6p-14f};
  constexpr float kLogErfc[] = {-0x1.72ea9p-12f, -0x1.2085b2p+0f, -0x1.46c588p-1f, -0x1.a60a6cp-4f,
                                0x1.6541f4p-6f,  -0x1.814c7ep-9f, 0x1.852cbp-13f};
  const F32x16 a = min(broadcast(4.0f), abs(x));  // erf 4 rounds to 1; a NaN stays one
  const F32x16 small = x * polynomial(x * x, kOdd);
  const F32x16 large = broadcast(1.0f) - exp(polynomial(a, kLogErfc));
  return select(less(a, broadcast(1.0f)), small, copy_sign(large, x));
}

/// x / (1 + e^-x) (SiLU, Elfwing et al. 2017).
CANDOR_INLINE F32x16 silu(F32x16 x) {
  return x / (broadcast(1.0f) + exp(broadcast(0.0f) - x));
}

/// x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))) (GELU, Hendrycks and Gimpel 2016).
CANDOR_INLINE F32x16 gelu_tanh(F32x16 x) {
  constexpr float kScale = 0x1.988454p-1f;  // √(2/π)
  const F32x16 cube = x * x * x;
  const F32x16 inner = fma(cube, broadcast(0.044715f), x) * broadcast(kScale);
  return broadcast(0.5f) * x * (broadcast(1.0f) + tanh(inner));
}

/// x/2 · (1 + erf(x/√2)), the exact GELU.
CANDOR_INLINE F32x16 gelu_erf(F32x16 x) {
  constexpr float kRootHalf = 0x1.6a09e6p-1f;
  return broadcast(0.5f) * x * (broadcast(1.0f) + erf(x * broadcast(kRootHalf)));
}

/// The larger of x and 0; 0 of NaN.
CANDOR_INLINE F32x16 relu(F32x16 x) {
  return max(x, broadcast(0.0f));
}

/// cap · tanh(x / cap): bounds x to ±cap (Gemma 2).
CANDOR_INLINE F32x16 capped(F32x16 x, F32x16 cap) {
  return cap * tanh(x / cap);
}

}  // namespace candor::cpu::CANDOR_ISA
