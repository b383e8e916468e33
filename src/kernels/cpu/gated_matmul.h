// f(x · gateᵀ) · (x · upᵀ): both products side by side in scratch memory, then the gate: the bits of gated_activation
// over two matrix products.
#pragma once

#include "kernels/cpu/gate.h"
#include "kernels/cpu/matmul_a8_256.h"
#include "kernels/cpu/matmul_a8_32.h"
#include "kernels/cpu/matmul_float.h"

namespace candor::cpu::CANDOR_ISA {

template <typename Matmul>
struct GatedMatmul {
  static std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {
    return shapes.rows * row_bytes(shapes.dst_cols) + Matmul::scratch_bytes(shapes, constants);
  }

  static void run(const KernelArguments& arguments) {
    const std::uint32_t cols = arguments.dst.cols;
    const std::uint32_t rows = input(arguments, 0).rows;
    KernelArguments products = arguments;
    products.dst = {arguments.scratch.data(), rows, 2 * cols, row_bytes(cols), Encoding::f32};
    products.scratch = arguments.scratch.subspan(rows * row_bytes(cols));
    Matmul::run(products);

    Matrix sides[2] = {products.dst, products.dst};
    sides[0].cols = sides[1].cols = cols;
    sides[1].data += std::uint64_t{cols} * sizeof(float);
    KernelArguments gate = arguments;
    gate.inputs = sides;
    apply_gate(gate);
  }

 private:
  static std::uint64_t row_bytes(std::uint32_t cols) {
    return (std::uint64_t{cols} * 2 * sizeof(float) + 63) / 64 * 64;
  }
};

// Compiled in gated_matmul.cpp.
extern template struct GatedMatmul<FloatMatmul<F32Element>>;
extern template struct GatedMatmul<FloatMatmul<F16Element>>;
extern template struct GatedMatmul<FloatMatmul<Bf16Element>>;
extern template struct GatedMatmul<IntegerMatmul<Q8_0Panel>>;
extern template struct GatedMatmul<IntegerMatmul<Q4_0Panel>>;
extern template struct GatedMatmul<IntegerMatmul<SuperBlockPanel<Q4_K>>>;
extern template struct GatedMatmul<IntegerMatmul<SuperBlockPanel<Q5_K>>>;
extern template struct GatedMatmul<IntegerMatmul<SuperBlockPanel<Q6_K>>>;

}  // namespace candor::cpu::CANDOR_ISA
