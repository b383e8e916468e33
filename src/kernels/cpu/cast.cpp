// f32 to f16, rounded to nearest even with subnormals kept and overflow to infinity; f16 to f32, exact.
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::cast {

void f32_to_f16(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  for_pieces(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    const float* in = row<const float>(x, r) + first;
    std::uint16_t* out = row<std::uint16_t>(arguments.dst, r) + first;
    for_each_vector(count, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      std::uint16_t halves[kLanes];
      store_f16(halves, load_first(in + i, n));
      __builtin_memcpy(out + i, halves, static_cast<std::size_t>(n) * sizeof(std::uint16_t));
    });
  });
}

void f16_to_f32(const KernelArguments& arguments) {
  const Matrix& x = input(arguments, 0);
  for_pieces(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, std::uint32_t first, std::uint32_t count) {
    const std::byte* in = row<const std::byte>(x, r) + std::size_t{first} * F16Element::kBytes;
    float* out = row<float>(arguments.dst, r) + first;
    for_each_vector(count, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      store_first(out + i, load_elements<F16Element>(in + std::size_t{i} * F16Element::kBytes, n), n);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::cast
