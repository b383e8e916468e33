// f(gate) · up with f silu (SwiGLU), gelu_tanh or gelu_erf (GeGLU; Shazeer 2020): see math.h.
#pragma once

#include "kernels/cpu/math.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

/// The inputs are gate and up; the first constant says which f.
inline void apply_gate(const KernelArguments& arguments) {
  switch (integer(arguments.constants, 0)) {
    case 0:
      return map_elements2(arguments, [](F32x16 g, F32x16 u) CANDOR_INLINE_LAMBDA { return silu(g) * u; });
    case 1:
      return map_elements2(arguments, [](F32x16 g, F32x16 u) CANDOR_INLINE_LAMBDA { return gelu_tanh(g) * u; });
    default:
      return map_elements2(arguments, [](F32x16 g, F32x16 u) CANDOR_INLINE_LAMBDA { return gelu_erf(g) * u; });
  }
}

}  // namespace candor::cpu::CANDOR_ISA
