// Products with chosen experts' weights, an entry for each encoding: see expert_matmul.h.
#include "kernels/cpu/expert_matmul.h"

namespace candor::cpu::CANDOR_ISA {

template class ExpertMatmul<FloatMatmul<F32Element>, PlainParts>;
template class ExpertMatmul<FloatMatmul<F16Element>, PlainParts>;
template class ExpertMatmul<FloatMatmul<Bf16Element>, PlainParts>;
template class ExpertMatmul<IntegerMatmul<Q8_0Panel>, QuantizedParts<Activations32>>;
template class ExpertMatmul<IntegerMatmul<Q4_0Panel>, QuantizedParts<Activations32>>;
template class ExpertMatmul<IntegerMatmul<SuperBlockPanel<Q4_K>>, QuantizedParts<Activations256>>;
template class ExpertMatmul<IntegerMatmul<SuperBlockPanel<Q5_K>>, QuantizedParts<Activations256>>;
template class ExpertMatmul<IntegerMatmul<SuperBlockPanel<Q6_K>>, QuantizedParts<Activations256>>;

}  // namespace candor::cpu::CANDOR_ISA
