// The weighted sum of what the chosen experts gave: one chain fma(weights[r][j], src[r][j · C + c], …) over rising j,
// from 0.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::combine_experts {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Matrix& weights = input(arguments, 1);
  const Matrix& dst = arguments.dst;
  for_pieces(*arguments.pool, dst.rows, dst.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    const float* in = row<const float>(x, r) + first;
    const float* factor = row<const float>(weights, r);
    float* out = row<float>(dst, r) + first;
    for_each_vector(count, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      F32x16 sum = broadcast(0.0f);
      for (std::uint32_t j = 0; j < weights.cols; ++j)
        sum = fma(broadcast(factor[j]), load_first(in + std::size_t{j} * dst.cols + i, n), sum);
      store_first(out + i, sum, n);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::combine_experts
