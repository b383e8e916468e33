// y = x · wᵀ with f32 weights and activations in f32: see matmul_float.h.
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA {

template struct FloatMatmul<F32Element>;

}  // namespace candor::cpu::CANDOR_ISA
