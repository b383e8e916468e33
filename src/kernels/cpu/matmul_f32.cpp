// y = x · wᵀ with f32 weights and activations in f32: see matmul_float.h.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA::matmul_f32 {

using Matmul = FloatMatmul<F32Element>;

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

}  // namespace candor::cpu::CANDOR_ISA::matmul_f32
