// Register tiles of float products: rows of broadcast values times panels of 16 lanes. One chain of fused multiply-adds
// for each result, in rising order of k, whatever the tile's shape.
#pragma once

#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

/// acc[r][p] continued over `depth` steps of K. Rows lie `row_stride` floats apart, panels `panel_stride` bytes.
template <typename Element, int Rows, int Panels>
CANDOR_INLINE void multiply_accumulate(F32x16 (&acc)[Rows][Panels], const float* x, std::size_t row_stride,
                                       const std::byte* w, std::size_t panel_stride, std::uint32_t depth) {
  const float* x_row[Rows];
  unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { x_row[r] = x + r * row_stride; });
  for (std::size_t k = 0; k < depth; ++k) {
    F32x16 weights[Panels];
    unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA {
      weights[p] = Element::load16(w + p * panel_stride + k * (kLanes * Element::kBytes));
      keep_in_register(weights[p]);
    });
    unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA {
      const F32x16 value = broadcast(x_row[r][k]);
      unroll<Panels>([&](auto p) CANDOR_INLINE_LAMBDA { acc[r][p] = fma(value, weights[p], acc[r][p]); });
    });
  }
}

/// c[r][0 … 15] += Σ x[r][k] · w[k][0 … 15] over `depth` steps, in order; from zero if `first`. Strides in floats.
template <int Rows>
void multiply_tile(float* c, std::size_t c_stride, bool first, const float* x, std::size_t x_stride, const float* w,
                   std::uint32_t depth) {
  F32x16 acc[Rows][1];
  unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { acc[r][0] = first ? broadcast(0.0f) : load(c + r * c_stride); });
  multiply_accumulate<F32Element, Rows, 1>(acc, x, x_stride, reinterpret_cast<const std::byte*>(w), 0, depth);
  unroll<Rows>([&](auto r) CANDOR_INLINE_LAMBDA { store(c + r * c_stride, acc[r][0]); });
}

}  // namespace candor::cpu::CANDOR_ISA
