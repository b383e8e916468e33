// RMSNorm (Zhang and Sennrich 2019) of groups of `width` columns: x · (1 / √(Σx²/width + eps)) · (w + weightOffset),
// each operation rounded to f32; the sum of squares as in reduce.h, fused. The root and the quotients are IEEE's,
// exact.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"
#include "kernels/cpu/reduce.h"

namespace candor::cpu::CANDOR_ISA::rmsnorm {

namespace {

template <typename Element>
void normalize(const float* x, float* out, std::uint32_t width, float eps, const std::byte* w, float offset) {
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

}  // namespace

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Weight& w = weight(arguments, 0);
  const float eps = real(arguments.constants, 0);
  const std::uint32_t width = integer(arguments.constants, 1);
  const float offset = real(arguments.constants, 2);
  with_element(w.encoding, [&](auto element) {
    for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned) {
      for (std::uint32_t first = 0; first < x.cols; first += width)
        normalize<decltype(element)>(row<const float>(x, r) + first, row<float>(arguments.dst, r) + first, width, eps,
                                     w.data, offset);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::rmsnorm
