// RMSNorm of whole rows, whose results go to int8 blocks at once (encodings a8_32 and a8_256): the bits of rmsnorm and
// quantize one after the other. See rmsnorm.h and activations.h.
#include "kernels/cpu/activations.h"
#include "kernels/cpu/entries.h"
#include "kernels/cpu/rmsnorm.h"

namespace candor::cpu::CANDOR_ISA::rmsnorm_quantize {
namespace {

template <typename Layout>
void normalize_and_quantize(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  const Weight& w = weight(arguments, 0);
  const RmsNorm norm(arguments.constants);
  float* scratch = reinterpret_cast<float*>(arguments.scratch.data());
  with_element(w.encoding, [&](auto element) {
    for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned worker) {
      float* normed = scratch + std::size_t{worker} * x.cols;
      norm.row<decltype(element)>(row<const float>(x, r), normed, x.cols, w.data);
      Quantizer<Layout>::quantize_row(normed, x.cols, row<std::int8_t>(arguments.dst, r));
    });
  });
}

}  // namespace

std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants&) {
  return std::uint64_t{shapes.threads} * shapes.src_cols * sizeof(float);
}

void a8_32(const KernelArguments& arguments) {
  normalize_and_quantize<Activations32>(arguments);
}

void a8_256(const KernelArguments& arguments) {
  normalize_and_quantize<Activations256>(arguments);
}

}  // namespace candor::cpu::CANDOR_ISA::rmsnorm_quantize
