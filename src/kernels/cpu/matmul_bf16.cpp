// y = x · wᵀ with bf16 weights and activations in f32: see matmul_float.h.
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA {

template struct FloatMatmul<Bf16Element>;

}  // namespace candor::cpu::CANDOR_ISA
