// The search behind the K-quant encoders (docs/formats/quantization.md): which scales and codes give a block of 256
// values the smallest squared error. Compiled once for each instruction set that it gains by, to the same results:
// vectors are eight lanes on each, and sums run in one order. Private to src/formats/quant.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "formats/quant/blocks.h"

namespace candor::quant {

inline constexpr int kAffineSubs = 8;      ///< sub-blocks of 32 of a q4_k or q5_k block
inline constexpr int kSymmetricSubs = 16;  ///< sub-blocks of 16 of a q6_k block
inline constexpr int kLowSixCode = -32;

/// x ≈ d·scale·code − dmin·min; scale and min are integers 0 … 63, codes 0 … top.
struct AffineBlock {
  float d = 0;
  float dmin = 0;
  std::array<float, kAffineSubs> scale{};
  std::array<float, kAffineSubs> min{};
  std::array<float, kSuper> codes{};
};

/// x ≈ d·scale·code; scale is an integer −128 … 127, codes −32 … 31.
struct SymmetricBlock {
  float d = 0;
  std::array<float, kSymmetricSubs> scale{};
  std::array<float, kSuper> codes{};
};

struct KSearch {
  std::string_view isa;
  /// The squared error of element i counts weights[i] times (not negative); `top` is the largest code.
  AffineBlock (*affine)(const float* x, const float* weights, float top);
  SymmetricBlock (*symmetric)(const float* x);
};

/// What this processor can run, best first; the last is for any.
[[nodiscard]] std::span<const KSearch> k_searches();

}  // namespace candor::quant
