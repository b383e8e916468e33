// RMSNorm: see rmsnorm.h.
#include "kernels/cpu/rmsnorm.h"

#include "kernels/cpu/entries.h"

namespace candor::cpu::CANDOR_ISA::rmsnorm {

void run(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Weight& w = weight(arguments, 0);
  const RmsNorm norm(arguments.constants);
  with_element(w.encoding, [&](auto element) {
    for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned) {
      norm.row<decltype(element)>(row<const float>(x, r), row<float>(arguments.dst, r), x.cols, w.data);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::rmsnorm
