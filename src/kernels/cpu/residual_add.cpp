// src + residual.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::residual_add {

void run(const KernelArguments& arguments) {
  map_elements2(arguments, [](F32x16 x, F32x16 residual) CANDOR_INLINE_LAMBDA { return x + residual; });
}

}  // namespace candor::cpu::CANDOR_ISA::residual_add
