// The functions kernel sources define; table.cpp puts them under the names of the registry. Each namespace is a file:
// cpu/<namespace>.cpp. The matrix products are classes of headers of their own.
#pragma once

#include "kernels/cpu/kernel.h"

namespace candor::cpu::CANDOR_ISA {

#define CANDOR_ENTRY(name)          \
  namespace name {                  \
  void run(const KernelArguments&); \
  }
CANDOR_ENTRY(activation)
CANDOR_ENTRY(bias_add)
CANDOR_ENTRY(combine_experts)
CANDOR_ENTRY(gated_activation)
CANDOR_ENTRY(gather)
CANDOR_ENTRY(l2_normalize)
CANDOR_ENTRY(layernorm)
CANDOR_ENTRY(multiply)
CANDOR_ENTRY(pool)
CANDOR_ENTRY(quantize_a8_32)
CANDOR_ENTRY(quantize_a8_256)
CANDOR_ENTRY(residual_add)
CANDOR_ENTRY(rmsnorm)
CANDOR_ENTRY(routing_weights)
CANDOR_ENTRY(row_slice)
CANDOR_ENTRY(scale)
CANDOR_ENTRY(slice_columns)
CANDOR_ENTRY(softcap)
CANDOR_ENTRY(softmax)
CANDOR_ENTRY(top_k)
#undef CANDOR_ENTRY

namespace attention {
void run(const KernelArguments&);
std::uint64_t scratch_bytes(const KernelShapes&, const Constants&);
std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding, const Constants&);
}  // namespace attention

namespace cast {
void f32_to_f16(const KernelArguments&);
void f16_to_f32(const KernelArguments&);
}  // namespace cast

// The products themselves are FloatMatmul's.
namespace matmul_transposed {
void pack_f32(const std::byte*, std::uint64_t rows, std::uint64_t cols, std::byte* packed, ThreadPool&);
void pack_16(const std::byte*, std::uint64_t rows, std::uint64_t cols, std::byte* packed, ThreadPool&);
std::uint64_t packed_bytes_f32(std::uint64_t rows, std::uint64_t cols);
std::uint64_t packed_bytes_16(std::uint64_t rows, std::uint64_t cols);
}  // namespace matmul_transposed

namespace rmsnorm_quantize {
void a8_32(const KernelArguments&);
void a8_256(const KernelArguments&);
std::uint64_t scratch_bytes(const KernelShapes&, const Constants&);
}  // namespace rmsnorm_quantize

namespace rope {
void run(const KernelArguments&);
std::uint64_t scratch_bytes(const KernelShapes&, const Constants&);
}  // namespace rope

namespace rope_attention {
void run(const KernelArguments&);
std::uint64_t scratch_bytes(const KernelShapes&, const Constants&);
std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding, const Constants&);
}  // namespace rope_attention

namespace short_conv {
void run(const KernelArguments&);
std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding, const Constants&);
}  // namespace short_conv

}  // namespace candor::cpu::CANDOR_ISA
