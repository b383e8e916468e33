// Sums along a row in one fixed order: element i goes to lane i mod 64, each lane adds in rising order, then lane
// vectors 0 + 1 and 2 + 3, then those, then halves (reduce_add). Independent of the width of registers and of who
// computes it.
#pragma once

#include "kernels/cpu/simd.h"

namespace candor::cpu::CANDOR_ISA {

/// Σ f(x[i]) where step(acc, v, lanes) adds f(v) to acc; lanes outside the row are zero in v and false in `lanes`, and
/// must add 0.
template <typename Step>
CANDOR_INLINE float sum_row(const float* x, std::uint32_t count, Step&& step) {
  F32x16 acc[4];
  unroll<4>([&](auto j) CANDOR_INLINE_LAMBDA { acc[j] = broadcast(0.0f); });
  std::uint32_t i = 0;
  for (; i + 64 <= count; i += 64)
    unroll<4>([&](auto j) CANDOR_INLINE_LAMBDA { acc[j] = step(acc[j], load(x + i + 16 * j), lanes_between(0, 16)); });
  unroll<4>([&](auto j) CANDOR_INLINE_LAMBDA {
    const int left = static_cast<int>(count - i) - 16 * j;
    if (left > 0) {
      const int lanes = left < kLanes ? left : kLanes;
      acc[j] = step(acc[j], load_first(x + i + 16 * j, lanes), lanes_between(0, lanes));
    }
  });
  return reduce_add((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

}  // namespace candor::cpu::CANDOR_ISA
