// src[r][c] + bias[c].
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::bias_add {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Weight& bias = weight(arguments, 0);
  with_element(bias.encoding, [&](auto element) CANDOR_INLINE_LAMBDA {
    using Element = decltype(element);
    for_pieces(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
      const float* in = row<const float>(x, r) + first;
      float* out = row<float>(arguments.dst, r) + first;
      const std::byte* b = bias.data + std::size_t{first} * Element::kBytes;
      for_each_vector(count, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
        const F32x16 sum = load_first(in + i, n) + load_elements<Element>(b + std::size_t{i} * Element::kBytes, n);
        store_first(out + i, sum, n);
      });
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::bias_add
