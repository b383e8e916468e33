// Files and entries, as the registry names them, and their functions for one instruction set.
#include "kernels/cpu/table.h"

#include "kernels/cpu/entries.h"
#include "kernels/cpu/sample.h"

namespace candor::cpu::CANDOR_ISA {
namespace {

// Constant data: code compiled for this instruction set must not run when the program starts.
constinit const Kernel kKernels[] = {
    {.file = "cpu/matmul_f32.cpp",
     .entry = "main",
     .run = matmul_f32::run,
     .packed_bytes = matmul_f32::packed_bytes,
     .pack = matmul_f32::pack,
     .layout = "panel16_f32",
     .scratch_bytes = matmul_f32::scratch_bytes},
    {.file = "cpu/matmul_f16.cpp",
     .entry = "main",
     .run = matmul_f16::run,
     .packed_bytes = matmul_f16::packed_bytes,
     .pack = matmul_f16::pack,
     .layout = "panel16_f16",
     .scratch_bytes = matmul_f16::scratch_bytes},
    {.file = "cpu/matmul_bf16.cpp",
     .entry = "main",
     .run = matmul_bf16::run,
     .packed_bytes = matmul_bf16::packed_bytes,
     .pack = matmul_bf16::pack,
     .layout = "panel16_bf16",
     .scratch_bytes = matmul_bf16::scratch_bytes},
    {.file = "cpu/matmul_q8_0.cpp",
     .entry = "main",
     .run = matmul_q8_0::run,
     .packed_bytes = matmul_q8_0::packed_bytes,
     .pack = matmul_q8_0::pack,
     .layout = "panel16_q8_0",
     .scratch_bytes = matmul_q8_0::scratch_bytes},
    {.file = "cpu/matmul_q4_0.cpp",
     .entry = "main",
     .run = matmul_q4_0::run,
     .packed_bytes = matmul_q4_0::packed_bytes,
     .pack = matmul_q4_0::pack,
     .layout = "panel16_q4_0",
     .scratch_bytes = matmul_q4_0::scratch_bytes},
    {.file = "cpu/matmul_q4_k.cpp",
     .entry = "main",
     .run = matmul_q4_k::run,
     .packed_bytes = matmul_q4_k::packed_bytes,
     .pack = matmul_q4_k::pack,
     .layout = "panel16_q4_k",
     .scratch_bytes = matmul_q4_k::scratch_bytes},
    {.file = "cpu/matmul_q5_k.cpp",
     .entry = "main",
     .run = matmul_q5_k::run,
     .packed_bytes = matmul_q5_k::packed_bytes,
     .pack = matmul_q5_k::pack,
     .layout = "panel16_q5_k",
     .scratch_bytes = matmul_q5_k::scratch_bytes},
    {.file = "cpu/matmul_q6_k.cpp",
     .entry = "main",
     .run = matmul_q6_k::run,
     .packed_bytes = matmul_q6_k::packed_bytes,
     .pack = matmul_q6_k::pack,
     .layout = "panel16_q6_k",
     .scratch_bytes = matmul_q6_k::scratch_bytes},
    {.file = "cpu/activation.cpp", .entry = "main", .run = activation::run},
    {.file = "cpu/bias_add.cpp", .entry = "main", .run = bias_add::run},
    {.file = "cpu/gated_activation.cpp", .entry = "main", .run = gated_activation::run},
    {.file = "cpu/gather.cpp", .entry = "main", .run = gather::run},
    {.file = "cpu/layernorm.cpp", .entry = "main", .run = layernorm::run},
    {.file = "cpu/quantize_a8_32.cpp", .entry = "main", .run = quantize_a8_32::run},
    {.file = "cpu/quantize_a8_256.cpp", .entry = "main", .run = quantize_a8_256::run},
    {.file = "cpu/residual_add.cpp", .entry = "main", .run = residual_add::run},
    {.file = "cpu/rmsnorm.cpp", .entry = "main", .run = rmsnorm::run},
    {.file = "cpu/row_slice.cpp", .entry = "main", .run = row_slice::run},
    {.file = "cpu/scale.cpp", .entry = "main", .run = scale::run},
    {.file = "cpu/slice_columns.cpp", .entry = "main", .run = slice_columns::run},
    {.file = "cpu/softcap.cpp", .entry = "main", .run = softcap::run},
    {.file = "cpu/attention.cpp",
     .entry = "main",
     .run = attention::run,
     .scratch_bytes = attention::scratch_bytes,
     .kv_page_bytes = attention::kv_page_bytes},
    {.file = "cpu/rope.cpp", .entry = "main", .run = rope::run, .scratch_bytes = rope::scratch_bytes},
    {.file = "cpu/cast.cpp", .entry = "f32_to_f16", .run = cast::f32_to_f16},
    {.file = "cpu/cast.cpp", .entry = "f16_to_f32", .run = cast::f16_to_f32},
    {.file = "cpu/sample.cpp", .entry = "main", .run = sample::run, .scratch_bytes = sample::scratch_bytes},
};

}  // namespace

std::span<const Kernel> kernel_table() {
  return kKernels;
}

}  // namespace candor::cpu::CANDOR_ISA
