// Rows of length 1: x / max(√Σx², eps), the sum of squares as in reduce.h, fused.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"
#include "kernels/cpu/reduce.h"

namespace candor::cpu::CANDOR_ISA::l2_normalize {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const F32x16 eps = broadcast(real(arguments.constants, 0));
  for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned) {
    const float* in = row<const float>(x, r);
    float* out = row<float>(arguments.dst, r);
    const float squares =
        sum_row(in, x.cols, [](F32x16 acc, F32x16 v, Mask16) CANDOR_INLINE_LAMBDA { return fma(v, v, acc); });
    const F32x16 length = max(sqrt(broadcast(squares)), eps);
    for_each_vector(x.cols, [&](std::uint32_t i, auto n)
                                CANDOR_INLINE_LAMBDA { store_first(out + i, load_first(in + i, n) / length, n); });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::l2_normalize
