// src · scale.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::scale {

void run(const KernelArguments& arguments) {
  const F32x16 scale = broadcast(real(arguments.constants, 0));
  map_elements(arguments, [&](F32x16 x) CANDOR_INLINE_LAMBDA { return x * scale; });
}

}  // namespace candor::cpu::CANDOR_ISA::scale
