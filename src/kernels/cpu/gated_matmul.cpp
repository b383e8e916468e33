// Gate and up projections with their gate, an entry for each encoding: see gated_matmul.h.
#include "kernels/cpu/gated_matmul.h"

namespace candor::cpu::CANDOR_ISA {

template struct GatedMatmul<FloatMatmul<F32Element>>;
template struct GatedMatmul<FloatMatmul<F16Element>>;
template struct GatedMatmul<FloatMatmul<Bf16Element>>;
template struct GatedMatmul<IntegerMatmul<Q8_0Panel>>;
template struct GatedMatmul<IntegerMatmul<Q4_0Panel>>;
template struct GatedMatmul<IntegerMatmul<SuperBlockPanel<Q4_K>>>;
template struct GatedMatmul<IntegerMatmul<SuperBlockPanel<Q5_K>>>;
template struct GatedMatmul<IntegerMatmul<SuperBlockPanel<Q6_K>>>;

}  // namespace candor::cpu::CANDOR_ISA
