// Where the results of a matrix product go. A step may name several weights, whose results lie side by side in a row
// (qkv_matmul), and a second operand, a residual to which results are added (matmul_residual): the same products,
// stored in another way, so that fused steps are the bits of the steps they stand for.
#pragma once

#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

/// The products with one weight, packed, and where they go.
struct Product {
  const std::byte* weight;
  Matrix dst;                           ///< the columns of this weight
  const std::byte* residual = nullptr;  ///< f32, as wide as dst; null: none
  std::uint64_t residual_row_bytes = 0;
};

/// Panels first … last - 1 of one weight.
struct ProductChunk {
  Product product;
  std::uint32_t first, last;
};

CANDOR_INLINE Product product_of(const KernelArguments& arguments, std::size_t index, std::uint32_t column) {
  const Weight& w = weight(arguments, index);
  Product out{w.data, arguments.dst};
  if (arguments.weights.size() > 1) {
    out.dst.data += std::uint64_t{column} * sizeof(float);
    out.dst.cols = static_cast<std::uint32_t>(w.rows);
  }
  if (arguments.inputs.size() > 1) {
    out.residual = input(arguments, 1).data;
    out.residual_row_bytes = input(arguments, 1).row_bytes;
  }
  return out;
}

CANDOR_INLINE std::uint32_t chunk_count(const Product& product, std::uint32_t chunk_panels) {
  return (panel_count(product.dst.cols) + chunk_panels - 1) / chunk_panels;
}

/// Chunks of up to `chunk_panels` panels over all weights.
CANDOR_INLINE std::uint32_t product_chunks(const KernelArguments& arguments, std::uint32_t chunk_panels) {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < arguments.weights.size(); ++i)
    count += chunk_count(product_of(arguments, i, 0), chunk_panels);
  return count;
}

CANDOR_INLINE ProductChunk product_chunk(const KernelArguments& arguments, std::uint32_t chunk,
                                         std::uint32_t chunk_panels) {
  std::uint32_t column = 0;
  for (std::size_t i = 0;; ++i) {
    const Product part = product_of(arguments, i, column);
    const std::uint32_t count = chunk_count(part, chunk_panels);
    if (chunk < count) {
      const std::uint32_t first = chunk * chunk_panels;
      const std::uint32_t panels = panel_count(part.dst.cols);
      return {part, first, panels - first < chunk_panels ? panels : first + chunk_panels};
    }
    chunk -= count;
    column += part.dst.cols;
  }
}

/// Sixteen outputs of row r, those that exist.
CANDOR_INLINE void store_outputs(const Product& product, std::uint32_t r, std::uint32_t panel, F32x16 values) {
  const std::uint32_t first = panel * kLanes;
  float* out = row<float>(product.dst, r) + first;
  const auto store_to = [&](auto n) CANDOR_INLINE_LAMBDA {
    if (product.residual)
      values = values +
               load_first(reinterpret_cast<const float*>(product.residual + r * product.residual_row_bytes) + first, n);
    store_first(out, values, n);
  };
  if (product.dst.cols - first >= kLanes) {
    store_to(std::integral_constant<int, kLanes>{});
  } else {
    store_to(static_cast<int>(product.dst.cols - first));
  }
}

}  // namespace candor::cpu::CANDOR_ISA
