// Attention: see attention.h.
#include "kernels/cpu/attention.h"

#include "kernels/cpu/entries.h"

namespace candor::cpu::CANDOR_ISA::attention {

template class Attention<PlainKv<F32Element>>;
template class Attention<PlainKv<F16Element>>;
template class Attention<Q8Kv>;

std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {
  return scratch(shapes, constants);
}

std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding encoding, const Constants& constants) {
  return page_bytes(positions, encoding, constants);
}

void run(const KernelArguments& arguments) {
  attend(arguments);
}

}  // namespace candor::cpu::CANDOR_ISA::attention
