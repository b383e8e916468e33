// y = x · wᵀ with Q4_0 weights and activations in a8_32: see matmul_a8_32.h.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/matmul_a8_32.h"

namespace candor::cpu::CANDOR_ISA::matmul_q4_0 {

using Matmul = IntegerMatmul<Q4_0Panel>;

void run(const KernelArguments& arguments) {
  Matmul::run(arguments);
}
std::uint64_t packed_bytes(std::uint64_t rows, std::uint64_t cols) {
  return Matmul::packed_bytes(rows, cols);
}
void pack(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed, ThreadPool& pool) {
  Matmul::pack(stored, rows, cols, packed, pool);
}
std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {
  return Matmul::scratch_bytes(shapes, constants);
}

}  // namespace candor::cpu::CANDOR_ISA::matmul_q4_0
