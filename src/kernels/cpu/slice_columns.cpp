// Columns offset … offset + width - 1 of each row: a part of a packed slot.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::slice_columns {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const std::size_t offset = integer(arguments.constants, 0);
  const std::size_t bytes = integer(arguments.constants, 1) * sizeof(float);
  for_rows(*arguments.pool, x.rows, arguments.dst.cols, [&](std::uint32_t r, unsigned) {
    __builtin_memcpy(row<float>(arguments.dst, r), row<const float>(x, r) + offset, bytes);
  });
}

}  // namespace candor::cpu::CANDOR_ISA::slice_columns
