// src · other.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::multiply {

void run(const KernelArguments& arguments) {
  map_elements2(arguments, [](F32x16 x, F32x16 other) CANDOR_INLINE_LAMBDA { return x * other; });
}

}  // namespace candor::cpu::CANDOR_ISA::multiply
