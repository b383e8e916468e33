// Products with chosen experts' weights, an entry for each encoding: see expert_matmul.h.
#include "kernels/cpu/expert_matmul.h"

#include "kernels/cpu/entries.h"
#include "kernels/cpu/matmul_a8_256.h"
#include "kernels/cpu/matmul_a8_32.h"
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA::expert_matmul {

// Each expert's weight is packed as the matrix product's is.
#define CANDOR_EXPERT_MATMUL(name, Matmul, Parts)                                                                   \
  namespace name {                                                                                                  \
  void run(const KernelArguments& arguments) {                                                                      \
    ExpertMatmul<Matmul, Parts>::run(arguments);                                                                    \
  }                                                                                                                 \
  std::uint64_t packed_bytes(std::uint64_t rows, std::uint64_t cols) {                                              \
    return Matmul::packed_bytes(rows, cols);                                                                        \
  }                                                                                                                 \
  void pack(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed, ThreadPool& pool) { \
    Matmul::pack(stored, rows, cols, packed, pool);                                                                 \
  }                                                                                                                 \
  std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {                             \
    return ExpertMatmul<Matmul, Parts>::scratch_bytes(shapes, constants);                                           \
  }                                                                                                                 \
  }

CANDOR_EXPERT_MATMUL(f32, FloatMatmul<F32Element>, PlainParts)
CANDOR_EXPERT_MATMUL(f16, FloatMatmul<F16Element>, PlainParts)
CANDOR_EXPERT_MATMUL(bf16, FloatMatmul<Bf16Element>, PlainParts)
CANDOR_EXPERT_MATMUL(q8_0, IntegerMatmul<Q8_0Panel>, QuantizedParts<Activations32>)
CANDOR_EXPERT_MATMUL(q4_0, IntegerMatmul<Q4_0Panel>, QuantizedParts<Activations32>)
CANDOR_EXPERT_MATMUL(q4_k, IntegerMatmul<SuperBlockPanel<Q4_K>>, QuantizedParts<Activations256>)
CANDOR_EXPERT_MATMUL(q5_k, IntegerMatmul<SuperBlockPanel<Q5_K>>, QuantizedParts<Activations256>)
CANDOR_EXPERT_MATMUL(q6_k, IntegerMatmul<SuperBlockPanel<Q6_K>>, QuantizedParts<Activations256>)

#undef CANDOR_EXPERT_MATMUL

}  // namespace candor::cpu::CANDOR_ISA::expert_matmul
