// Each row's softmax: e = exp(x - largest), e / Σe, the sum as in reduce.h.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/operands.h"
#include "kernels/cpu/reduce.h"

namespace candor::cpu::CANDOR_ISA::softmax {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned) {
    const float* in = row<const float>(x, r);
    float* out = row<float>(arguments.dst, r);
    float largest = in[0];
    for (std::uint32_t i = 1; i < x.cols; ++i) largest = in[i] > largest ? in[i] : largest;
    for_each_vector(x.cols, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      store_first(out + i, exp(load_first(in + i, n) - broadcast(largest)), n);
    });
    const F32x16 sum =
        broadcast(sum_row(out, x.cols, [](F32x16 acc, F32x16 v, Mask16) CANDOR_INLINE_LAMBDA { return acc + v; }));
    for_each_vector(x.cols, [&](std::uint32_t i, auto n)
                                CANDOR_INLINE_LAMBDA { store_first(out + i, load_first(out + i, n) / sum, n); });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::softmax
