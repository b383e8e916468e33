// RMSNorm (Zhang and Sennrich 2019) of groups of `width` columns: x · (1 / √(Σx²/width + eps)) · (w + weightOffset),
// each operation rounded to f32; the sum of squares as in reduce.h, fused. The root and the quotients are IEEE's,
// exact.
#pragma once

#include "kernels/cpu/operands.h"
#include "kernels/cpu/reduce.h"

namespace candor::cpu::CANDOR_ISA {

/// Constants of the steps that normalise.
struct RmsNorm {
  float eps;
  std::uint32_t width;
  float offset;

  explicit RmsNorm(const Constants& c) : eps(real(c, 0)), width(integer(c, 1)), offset(real(c, 2)) {}

  /// A row of `cols` columns, each `width` of them by themselves.
  template <typename Element>
  void row(const float* x, float* out, std::uint32_t cols, const std::byte* w) const {
    for (std::uint32_t first = 0; first < cols; first += width) group<Element>(x + first, out + first, w);
  }

 private:
  template <typename Element>
  void group(const float* x, float* out, const std::byte* w) const {
    const float squares =
        sum_row(x, width, [](F32x16 acc, F32x16 v, Mask16) CANDOR_INLINE_LAMBDA { return fma(v, v, acc); });
    const F32x16 mean = broadcast(squares / static_cast<float>(width) + eps);
    const F32x16 inverse = broadcast(1.0f) / sqrt(mean);
    const F32x16 shift = broadcast(offset);
    for_each_vector(width, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      const F32x16 factor = load_elements<Element>(w + std::size_t{i} * Element::kBytes, n) + shift;
      store_first(out + i, load_first(x + i, n) * inverse * factor, n);
    });
  }
};

}  // namespace candor::cpu::CANDOR_ISA
