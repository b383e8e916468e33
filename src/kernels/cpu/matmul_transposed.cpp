// y = x · w with a plain weight stored as [K, N], as GPT-2's checkpoints have theirs: the arithmetic of
// matmul_float.h, packed from the other order.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA::matmul_transposed {
namespace {

/// Packs a weight of `depth` rows and `outputs` columns; sixteen outputs of one k lie side by side already.
template <typename Element>
void pack_columns(const std::byte* stored, std::uint64_t depth, std::uint64_t outputs, std::byte* packed,
                  ThreadPool& pool) {
  constexpr std::uint32_t kStepBytes = FloatMatmul<Element>::kStepBytes;
  pool.parallel_for(panel_count(outputs), [&](std::uint32_t panel, unsigned) {
    std::byte* out = packed + panel * depth * kStepBytes;
    const std::uint64_t first = std::uint64_t{panel} * kLanes;
    const std::uint64_t lanes = outputs - first < kLanes ? outputs - first : kLanes;
    if (lanes < kLanes) __builtin_memset(out, 0, depth * kStepBytes);
    for (std::uint64_t k = 0; k < depth; ++k)
      __builtin_memcpy(out + k * kStepBytes, stored + (k * outputs + first) * Element::kBytes, lanes * Element::kBytes);
  });
}

template <typename Element>
std::uint64_t bytes_of_columns(std::uint64_t depth, std::uint64_t outputs) {
  return FloatMatmul<Element>::packed_bytes(outputs, depth);
}

}  // namespace

std::uint64_t packed_bytes_f32(std::uint64_t rows, std::uint64_t cols) {
  return bytes_of_columns<F32Element>(rows, cols);
}
std::uint64_t packed_bytes_16(std::uint64_t rows, std::uint64_t cols) {
  return bytes_of_columns<F16Element>(rows, cols);
}
void pack_f32(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed, ThreadPool& pool) {
  pack_columns<F32Element>(stored, rows, cols, packed, pool);
}
void pack_16(const std::byte* stored, std::uint64_t rows, std::uint64_t cols, std::byte* packed, ThreadPool& pool) {
  pack_columns<F16Element>(stored, rows, cols, packed, pool);
}

}  // namespace candor::cpu::CANDOR_ISA::matmul_transposed
