// LayerNorm (Ba et al. 2016): fma((x - mean) · (1 / √(Σ(x - mean)²/C + eps)), w, b), sums as in reduce.h.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"
#include "kernels/cpu/reduce.h"

namespace candor::cpu::CANDOR_ISA::layernorm {

namespace {

template <typename WeightElement, typename BiasElement>
void normalize(const float* x, float* out, std::uint32_t cols, float eps, const std::byte* w, const std::byte* b) {
  const float sum = sum_row(x, cols, [](F32x16 acc, F32x16 v, Mask16) CANDOR_INLINE_LAMBDA { return acc + v; });
  const F32x16 mean = broadcast(sum / static_cast<float>(cols));
  const float squares = sum_row(x, cols, [&](F32x16 acc, F32x16 v, Mask16 lanes) CANDOR_INLINE_LAMBDA {
    const F32x16 deviation = select(lanes, v - mean, broadcast(0.0f));
    return fma(deviation, deviation, acc);
  });
  const F32x16 inverse = broadcast(1.0f) / sqrt(broadcast(squares / static_cast<float>(cols) + eps));
  for_each_vector(cols, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
    const F32x16 factor = load_elements<WeightElement>(w + std::size_t{i} * WeightElement::kBytes, n);
    const F32x16 bias = load_elements<BiasElement>(b + std::size_t{i} * BiasElement::kBytes, n);
    store_first(out + i, fma((load_first(x + i, n) - mean) * inverse, factor, bias), n);
  });
}

}  // namespace

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Weight& w = weight(arguments, 0);
  const Weight& b = weight(arguments, 1);
  const float eps = real(arguments.constants, 0);
  with_element(w.encoding, [&](auto weight_element) {
    with_element(b.encoding, [&](auto bias_element) {
      for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned) {
        normalize<decltype(weight_element), decltype(bias_element)>(
            row<const float>(x, r), row<float>(arguments.dst, r), x.cols, eps, w.data, b.data);
      });
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::layernorm
