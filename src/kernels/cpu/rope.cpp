// Rotary position embedding: see rope.h.
#include "kernels/cpu/rope.h"

#include "kernels/cpu/entries.h"

namespace candor::cpu::CANDOR_ISA::rope {

std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {
  return rotation_scratch(shapes, constants);
}

void run(const KernelArguments& arguments) {
  rotate(arguments);
}

}  // namespace candor::cpu::CANDOR_ISA::rope
