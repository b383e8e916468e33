// An activation function of each element: silu, gelu_tanh, gelu_erf (math.h) or relu (the larger of x and 0; 0 of NaN).
#include "kernels/cpu/entries.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::activation {

void run(const KernelArguments& arguments) {
  switch (integer(arguments.constants, 0)) {
    case 0:
      return map_elements(arguments, [](F32x16 x) CANDOR_INLINE_LAMBDA { return silu(x); });
    case 1:
      return map_elements(arguments, [](F32x16 x) CANDOR_INLINE_LAMBDA { return gelu_tanh(x); });
    case 2:
      return map_elements(arguments, [](F32x16 x) CANDOR_INLINE_LAMBDA { return gelu_erf(x); });
    default:
      return map_elements(arguments, [](F32x16 x) CANDOR_INLINE_LAMBDA { return relu(x); });
  }
}

}  // namespace candor::cpu::CANDOR_ISA::activation
