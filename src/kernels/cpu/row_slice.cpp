// The last row of each segment, in order (rows = last), or every row (rows = all).
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::row_slice {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const std::size_t bytes = std::size_t{x.cols} * sizeof(float);
  const bool last_only = integer(arguments.constants, 0) == 0;
  const Segment* segments = arguments.batch->segments.data();
  for_rows(*arguments.pool, arguments.dst.rows, x.cols, [&](std::uint32_t r, unsigned) {
    const std::uint32_t source = last_only ? segments[r].first_row + segments[r].rows - 1 : r;
    __builtin_memcpy(row<std::byte>(arguments.dst, r), row<const std::byte>(x, source), bytes);
  });
}

}  // namespace candor::cpu::CANDOR_ISA::row_slice
