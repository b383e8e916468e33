// f(gate) · up: see gate.h.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/gate.h"

namespace candor::cpu::CANDOR_ISA::gated_activation {

void run(const KernelArguments& arguments) {
  apply_gate(arguments);
}

}  // namespace candor::cpu::CANDOR_ISA::gated_activation
