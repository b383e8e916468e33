// y = x · wᵀ with Q5_K weights and activations in a8_256: see matmul_a8_256.h.
#include "kernels/cpu/matmul_a8_256.h"

namespace candor::cpu::CANDOR_ISA {

template struct IntegerMatmul<SuperBlockPanel<Q5_K>>;

}  // namespace candor::cpu::CANDOR_ISA
