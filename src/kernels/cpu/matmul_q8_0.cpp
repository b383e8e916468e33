// y = x · wᵀ with Q8_0 weights and activations in a8_32: see matmul_a8_32.h.
#include "kernels/cpu/matmul_a8_32.h"

namespace candor::cpu::CANDOR_ISA {

template struct IntegerMatmul<Q8_0Panel>;

}  // namespace candor::cpu::CANDOR_ISA
