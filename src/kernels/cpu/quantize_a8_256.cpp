// f32 rows to int8 blocks of 256 with one f32 scale each (encoding a8_256): see activations.h.
#include "kernels/cpu/activations.h"
#include "kernels/cpu/entries.h"

namespace candor::cpu::CANDOR_ISA::quantize_a8_256 {

void run(const KernelArguments& arguments) {
  Quantizer<Activations256>::run(arguments);
}

}  // namespace candor::cpu::CANDOR_ISA::quantize_a8_256
