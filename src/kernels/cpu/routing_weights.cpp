// How much each chosen expert counts: src[r][experts[r][j]], divided by their sum (rising j) if `normalize` is set,
// times `scale`; each operation rounded to f32. An expert outside of src gives NaN.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::routing_weights {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Matrix& experts = input(arguments, 1);
  const bool normalize = integer(arguments.constants, 0) != 0;
  const float scale = real(arguments.constants, 1);
  for_rows(*arguments.pool, x.rows, experts.cols, [&](std::uint32_t r, unsigned) {
    const float* in = row<const float>(x, r);
    const std::uint32_t* chosen = row<const std::uint32_t>(experts, r);
    float* out = row<float>(arguments.dst, r);
    float sum = 0;
    for (std::uint32_t j = 0; j < experts.cols; ++j) {
      out[j] = chosen[j] < x.cols ? in[chosen[j]] : __builtin_nanf("");
      sum += out[j];
    }
    for (std::uint32_t j = 0; j < experts.cols; ++j) out[j] = (normalize ? out[j] / sum : out[j]) * scale;
  });
}

}  // namespace candor::cpu::CANDOR_ISA::routing_weights
