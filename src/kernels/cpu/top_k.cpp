// The columns of each row's `count` largest values, in falling order, the lower column first among equals. A NaN is
// never larger, so that a row of NaNs gives columns 0, 1, …
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::top_k {

namespace {

bool taken(const std::uint32_t* chosen, std::uint32_t count, std::uint32_t column) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (chosen[i] == column) return true;
  return false;
}

}  // namespace

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const std::uint32_t count = arguments.dst.cols;
  for_rows(*arguments.pool, x.rows, x.cols * count, [&](std::uint32_t r, unsigned) {
    const float* values = row<const float>(x, r);
    std::uint32_t* chosen = row<std::uint32_t>(arguments.dst, r);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t best = x.cols;
      for (std::uint32_t column = 0; column < x.cols; ++column)
        if (!taken(chosen, i, column) && (best == x.cols || values[column] > values[best])) best = column;
      chosen[i] = best;
    }
  });
}

}  // namespace candor::cpu::CANDOR_ISA::top_k
