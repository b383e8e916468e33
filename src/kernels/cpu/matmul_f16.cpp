// y = x · wᵀ with f16 weights and activations in f32: see matmul_float.h.
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA {

template struct FloatMatmul<F16Element>;

}  // namespace candor::cpu::CANDOR_ISA
