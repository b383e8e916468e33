// Files and entries, as the registry names them, and their functions for one instruction set.
#include "kernels/cpu/table.h"

#include "kernels/cpu/entries.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/gated_matmul.h"
#include "kernels/cpu/sample.h"

namespace candor::cpu::CANDOR_ISA {
namespace {

/// Entries main, residual and qkv are one function: what a step's operands and weights are says what it does
/// (products.h).
template <typename Matmul>
constexpr Kernel matmul(std::string_view file, std::string_view entry, std::string_view layout) {
  return {.file = file,
          .entry = entry,
          .run = Matmul::run,
          .packed_bytes = Matmul::packed_bytes,
          .pack = Matmul::pack,
          .layout = layout,
          .scratch_bytes = Matmul::scratch_bytes};
}

template <typename Matmul>
constexpr Kernel gated_matmul(std::string_view entry, std::string_view layout) {
  return {.file = "cpu/gated_matmul.cpp",
          .entry = entry,
          .run = GatedMatmul<Matmul>::run,
          .packed_bytes = Matmul::packed_bytes,
          .pack = Matmul::pack,
          .layout = layout,
          .scratch_bytes = GatedMatmul<Matmul>::scratch_bytes};
}

template <typename Matmul, typename Parts>
constexpr Kernel expert_matmul(std::string_view entry, std::string_view layout) {
  return {.file = "cpu/expert_matmul.cpp",
          .entry = entry,
          .run = ExpertMatmul<Matmul, Parts>::run,
          .packed_bytes = Matmul::packed_bytes,
          .pack = Matmul::pack,
          .layout = layout,
          .scratch_bytes = ExpertMatmul<Matmul, Parts>::scratch_bytes};
}

// Constant data: code compiled for this instruction set must not run when the program starts.
constinit const Kernel kKernels[] = {
    matmul<FloatMatmul<F32Element>>("cpu/matmul_f32.cpp", "main", "panel16_f32"),
    matmul<FloatMatmul<F32Element>>("cpu/matmul_f32.cpp", "residual", "panel16_f32"),
    matmul<FloatMatmul<F32Element>>("cpu/matmul_f32.cpp", "qkv", "panel16_f32"),
    matmul<FloatMatmul<F16Element>>("cpu/matmul_f16.cpp", "main", "panel16_f16"),
    matmul<FloatMatmul<F16Element>>("cpu/matmul_f16.cpp", "residual", "panel16_f16"),
    matmul<FloatMatmul<F16Element>>("cpu/matmul_f16.cpp", "qkv", "panel16_f16"),
    matmul<FloatMatmul<Bf16Element>>("cpu/matmul_bf16.cpp", "main", "panel16_bf16"),
    matmul<FloatMatmul<Bf16Element>>("cpu/matmul_bf16.cpp", "residual", "panel16_bf16"),
    matmul<FloatMatmul<Bf16Element>>("cpu/matmul_bf16.cpp", "qkv", "panel16_bf16"),
    matmul<IntegerMatmul<Q8_0Panel>>("cpu/matmul_q8_0.cpp", "main", "panel16_q8_0"),
    matmul<IntegerMatmul<Q8_0Panel>>("cpu/matmul_q8_0.cpp", "residual", "panel16_q8_0"),
    matmul<IntegerMatmul<Q8_0Panel>>("cpu/matmul_q8_0.cpp", "qkv", "panel16_q8_0"),
    matmul<IntegerMatmul<Q4_0Panel>>("cpu/matmul_q4_0.cpp", "main", "panel16_q4_0"),
    matmul<IntegerMatmul<Q4_0Panel>>("cpu/matmul_q4_0.cpp", "residual", "panel16_q4_0"),
    matmul<IntegerMatmul<Q4_0Panel>>("cpu/matmul_q4_0.cpp", "qkv", "panel16_q4_0"),
    matmul<IntegerMatmul<SuperBlockPanel<Q4_K>>>("cpu/matmul_q4_k.cpp", "main", "panel16_q4_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q4_K>>>("cpu/matmul_q4_k.cpp", "residual", "panel16_q4_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q4_K>>>("cpu/matmul_q4_k.cpp", "qkv", "panel16_q4_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q5_K>>>("cpu/matmul_q5_k.cpp", "main", "panel16_q5_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q5_K>>>("cpu/matmul_q5_k.cpp", "residual", "panel16_q5_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q5_K>>>("cpu/matmul_q5_k.cpp", "qkv", "panel16_q5_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q6_K>>>("cpu/matmul_q6_k.cpp", "main", "panel16_q6_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q6_K>>>("cpu/matmul_q6_k.cpp", "residual", "panel16_q6_k"),
    matmul<IntegerMatmul<SuperBlockPanel<Q6_K>>>("cpu/matmul_q6_k.cpp", "qkv", "panel16_q6_k"),
    gated_matmul<FloatMatmul<F32Element>>("f32", "panel16_f32"),
    gated_matmul<FloatMatmul<F16Element>>("f16", "panel16_f16"),
    gated_matmul<FloatMatmul<Bf16Element>>("bf16", "panel16_bf16"),
    gated_matmul<IntegerMatmul<Q8_0Panel>>("q8_0", "panel16_q8_0"),
    gated_matmul<IntegerMatmul<Q4_0Panel>>("q4_0", "panel16_q4_0"),
    gated_matmul<IntegerMatmul<SuperBlockPanel<Q4_K>>>("q4_k", "panel16_q4_k"),
    gated_matmul<IntegerMatmul<SuperBlockPanel<Q5_K>>>("q5_k", "panel16_q5_k"),
    gated_matmul<IntegerMatmul<SuperBlockPanel<Q6_K>>>("q6_k", "panel16_q6_k"),
    {.file = "cpu/matmul_transposed.cpp",
     .entry = "f32",
     .run = FloatMatmul<F32Element>::run,
     .packed_bytes = matmul_transposed::packed_bytes_f32,
     .pack = matmul_transposed::pack_f32,
     .layout = "panel16_f32_from_columns",
     .scratch_bytes = FloatMatmul<F32Element>::scratch_bytes},
    {.file = "cpu/matmul_transposed.cpp",
     .entry = "f16",
     .run = FloatMatmul<F16Element>::run,
     .packed_bytes = matmul_transposed::packed_bytes_16,
     .pack = matmul_transposed::pack_16,
     .layout = "panel16_f16_from_columns",
     .scratch_bytes = FloatMatmul<F16Element>::scratch_bytes},
    {.file = "cpu/matmul_transposed.cpp",
     .entry = "bf16",
     .run = FloatMatmul<Bf16Element>::run,
     .packed_bytes = matmul_transposed::packed_bytes_16,
     .pack = matmul_transposed::pack_16,
     .layout = "panel16_bf16_from_columns",
     .scratch_bytes = FloatMatmul<Bf16Element>::scratch_bytes},
    expert_matmul<FloatMatmul<F32Element>, PlainParts>("f32", "panel16_f32"),
    expert_matmul<FloatMatmul<F16Element>, PlainParts>("f16", "panel16_f16"),
    expert_matmul<FloatMatmul<Bf16Element>, PlainParts>("bf16", "panel16_bf16"),
    expert_matmul<IntegerMatmul<Q8_0Panel>, QuantizedParts<Activations32>>("q8_0", "panel16_q8_0"),
    expert_matmul<IntegerMatmul<Q4_0Panel>, QuantizedParts<Activations32>>("q4_0", "panel16_q4_0"),
    expert_matmul<IntegerMatmul<SuperBlockPanel<Q4_K>>, QuantizedParts<Activations256>>("q4_k", "panel16_q4_k"),
    expert_matmul<IntegerMatmul<SuperBlockPanel<Q5_K>>, QuantizedParts<Activations256>>("q5_k", "panel16_q5_k"),
    expert_matmul<IntegerMatmul<SuperBlockPanel<Q6_K>>, QuantizedParts<Activations256>>("q6_k", "panel16_q6_k"),
    {.file = "cpu/activation.cpp", .entry = "main", .run = activation::run},
    {.file = "cpu/bias_add.cpp", .entry = "main", .run = bias_add::run},
    {.file = "cpu/combine_experts.cpp", .entry = "main", .run = combine_experts::run},
    {.file = "cpu/gated_activation.cpp", .entry = "main", .run = gated_activation::run},
    {.file = "cpu/gather.cpp", .entry = "main", .run = gather::run},
    {.file = "cpu/l2_normalize.cpp", .entry = "main", .run = l2_normalize::run},
    {.file = "cpu/layernorm.cpp", .entry = "main", .run = layernorm::run},
    {.file = "cpu/multiply.cpp", .entry = "main", .run = multiply::run},
    {.file = "cpu/pool.cpp", .entry = "main", .run = pool::run},
    {.file = "cpu/quantize_a8_32.cpp", .entry = "main", .run = quantize_a8_32::run},
    {.file = "cpu/quantize_a8_256.cpp", .entry = "main", .run = quantize_a8_256::run},
    {.file = "cpu/residual_add.cpp", .entry = "main", .run = residual_add::run},
    {.file = "cpu/rmsnorm.cpp", .entry = "main", .run = rmsnorm::run},
    {.file = "cpu/routing_weights.cpp", .entry = "main", .run = routing_weights::run},
    {.file = "cpu/row_slice.cpp", .entry = "main", .run = row_slice::run},
    {.file = "cpu/scale.cpp", .entry = "main", .run = scale::run},
    {.file = "cpu/slice_columns.cpp", .entry = "main", .run = slice_columns::run},
    {.file = "cpu/softcap.cpp", .entry = "main", .run = softcap::run},
    {.file = "cpu/softmax.cpp", .entry = "main", .run = softmax::run},
    {.file = "cpu/top_k.cpp", .entry = "main", .run = top_k::run},
    {.file = "cpu/attention.cpp",
     .entry = "main",
     .run = attention::run,
     .scratch_bytes = attention::scratch_bytes,
     .kv_page_bytes = attention::kv_page_bytes},
    {.file = "cpu/short_conv.cpp", .entry = "main", .run = short_conv::run, .kv_page_bytes = short_conv::kv_page_bytes},
    {.file = "cpu/rope.cpp", .entry = "main", .run = rope::run, .scratch_bytes = rope::scratch_bytes},
    {.file = "cpu/rope_attention.cpp",
     .entry = "main",
     .run = rope_attention::run,
     .scratch_bytes = rope_attention::scratch_bytes,
     .kv_page_bytes = rope_attention::kv_page_bytes},
    {.file = "cpu/rmsnorm_quantize.cpp",
     .entry = "a8_32",
     .run = rmsnorm_quantize::a8_32,
     .scratch_bytes = rmsnorm_quantize::scratch_bytes},
    {.file = "cpu/rmsnorm_quantize.cpp",
     .entry = "a8_256",
     .run = rmsnorm_quantize::a8_256,
     .scratch_bytes = rmsnorm_quantize::scratch_bytes},
    {.file = "cpu/cast.cpp", .entry = "f32_to_f16", .run = cast::f32_to_f16},
    {.file = "cpu/cast.cpp", .entry = "f16_to_f32", .run = cast::f16_to_f32},
    {.file = "cpu/sample.cpp", .entry = "main", .run = sample::run, .scratch_bytes = sample::scratch_bytes},
};

}  // namespace

std::span<const Kernel> kernel_table() {
  return kKernels;
}

}  // namespace candor::cpu::CANDOR_ISA
