// One row a sequence of its rows: the first, the last, or their mean (sums over rising rows, divided by their number).
// The first and the mean are of a whole sequence; a segment that continues one gives NaNs.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::pool {

namespace {

enum Kind : std::uint32_t { kMean, kLast, kFirst };

}  // namespace

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Matrix& dst = arguments.dst;
  const std::uint32_t kind = integer(arguments.constants, 0);
  const Segment* segments = arguments.batch->segments.data();
  for_pieces(*arguments.pool, dst.rows, dst.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    const Segment& segment = segments[r];
    const bool whole = kind == kLast || segment.first_position == 0;
    const std::uint32_t begin = segment.first_row + (kind == kLast ? segment.rows - 1 : 0);
    const std::uint32_t rows = kind == kMean ? segment.rows : 1;
    const F32x16 divisor = broadcast(static_cast<float>(rows));
    float* out = row<float>(dst, r) + first;
    for_each_vector(count, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      F32x16 sum = broadcast(whole ? 0.0f : __builtin_nanf(""));
      for (std::uint32_t k = 0; k < rows; ++k) sum = sum + load_first(row<const float>(x, begin + k) + first + i, n);
      store_first(out + i, sum / divisor, n);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::pool
