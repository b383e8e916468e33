// Multiply-adds with operands in registers: what matrix products are measured against.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/table.h"

namespace candor::cpu::CANDOR_ISA {

std::uint64_t run_fma_chains(std::uint32_t steps) {
  F32x16 chain[kTileRows];
  unroll<kTileRows>([&](auto i) CANDOR_INLINE_LAMBDA { chain[i] = broadcast(static_cast<float>(i)); });
  F32x16 factor = broadcast(0.5f);
  F32x16 term = broadcast(0.25f);
  for (std::uint32_t step = 0; step < steps; ++step) {
    keep_in_register(factor);
    keep_in_register(term);
    unroll<kTileRows>([&](auto i) CANDOR_INLINE_LAMBDA { chain[i] = fma(chain[i], factor, term); });
  }
  F32x16 sum = broadcast(0.0f);
  unroll<kTileRows>([&](auto i) CANDOR_INLINE_LAMBDA { sum = sum + chain[i]; });
  volatile float result = reduce_add(sum);  // so that the chains are computed
  (void)result;
  return std::uint64_t{steps} * kTileRows * kLanes * 2;
}

}  // namespace candor::cpu::CANDOR_ISA
