// cap · tanh(src / cap) (Gemma 2): see math.h.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/math.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::softcap {

void run(const KernelArguments& arguments) {
  const F32x16 cap = broadcast(real(arguments.constants, 0));
  map_elements(arguments, [&](F32x16 x) CANDOR_INLINE_LAMBDA { return capped(x, cap); });
}

}  // namespace candor::cpu::CANDOR_ISA::softcap
