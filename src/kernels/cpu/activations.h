// Rows of quantized activations (encodings a8_32 and a8_256), as the quantize kernels write and matrix products read
// them: all int8 values, then one float32 scale a block, then sums of values.
#pragma once

#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

/// a8_32: a scale and an int32 sum for every 32 values.
struct Activations32 {
  static constexpr std::uint32_t kBlock = 32;
  using Sum = std::int32_t;
  static constexpr std::uint32_t kSumSpan = 32;  ///< values a sum covers
};

/// a8_256: a scale for every 256 values, an int16 sum for every 16.
struct Activations256 {
  static constexpr std::uint32_t kBlock = 256;
  using Sum = std::int16_t;
  static constexpr std::uint32_t kSumSpan = 16;
};

/// Bytes from a row's start to its scales and to its sums.
template <typename Layout>
CANDOR_INLINE std::size_t scales_offset(std::uint32_t cols) {
  return cols;
}
template <typename Layout>
CANDOR_INLINE std::size_t sums_offset(std::uint32_t cols) {
  return cols + std::size_t{cols} / Layout::kBlock * sizeof(float);
}

/// Quantizes f32 rows. For each block with largest magnitude m: the scale is m / 127 and each value
/// round-to-even(x · (127 / m)). A block whose m is below 2^-120 becomes zeros with scale 0; one that holds an infinity
/// or NaN becomes zeros with scale NaN, so that what is computed from it is NaN.
template <typename Layout>
struct Quantizer {
  CANDOR_INLINE static void quantize_row(const float* x, std::uint32_t cols, std::int8_t* out) {
    float* scales = reinterpret_cast<float*>(out + scales_offset<Layout>(cols));
    auto* sums = reinterpret_cast<typename Layout::Sum*>(out + sums_offset<Layout>(cols));
    for (std::uint32_t k = 0; k < cols; k += Layout::kBlock) {
      const float inverse = block_scale(x + k, scales[k / Layout::kBlock]);
      for (std::uint32_t i = 0; i < Layout::kBlock; i += Layout::kSumSpan)
        sums[(k + i) / Layout::kSumSpan] = quantize_span(x + k + i, inverse, out + k + i);
    }
  }

  static void run(const KernelArguments& arguments) {
    const Matrix& x = input(arguments, 0);
    for_rows(*arguments.pool, x.rows, x.cols, [&](std::uint32_t r, unsigned) {
      quantize_row(row<const float>(x, r), x.cols, row<std::int8_t>(arguments.dst, r));
    });
  }

 private:
  /// Sets the block's scale and returns what values are multiplied with.
  CANDOR_INLINE static float block_scale(const float* x, float& scale) {
    // Magnitudes compare as integers, NaNs above infinities: the same everywhere, which float maxima of NaNs are not.
    I32x16 largest = broadcast(std::int32_t{0});
    for (std::uint32_t i = 0; i < Layout::kBlock; i += kLanes)
      largest = max(largest, bits(load(x + i)) & broadcast(std::int32_t{0x7fffffff}));
    const std::int32_t magnitude = reduce_max(largest);
    constexpr std::int32_t kInfinity = 0x7f800000;
    constexpr std::int32_t kSmallest = (127 - 120) << 23;
    if (magnitude >= kInfinity) {
      scale = __builtin_nanf("");
      return 0;
    }
    if (magnitude < kSmallest) {
      scale = 0;
      return 0;
    }
    scale = bit_cast_to<float>(magnitude) / 127.0f;
    return 127.0f / bit_cast_to<float>(magnitude);
  }

  CANDOR_INLINE static typename Layout::Sum quantize_span(const float* x, float inverse, std::int8_t* out) {
    I32x16 sum = broadcast(std::int32_t{0});
    for (std::uint32_t i = 0; i < Layout::kSumSpan; i += kLanes) {
      const F32x16 shift = broadcast(0x1.8p23f);
      F32x16 scaled = load(x + i) * broadcast(inverse);
      if (inverse == 0) scaled = broadcast(0.0f);  // not infinity · 0
      const I32x16 q = to_i32((scaled + shift) - shift);
      store_i8(out + i, q);
      sum = sum + q;
    }
    return static_cast<typename Layout::Sum>(reduce_add(sum));
  }
};

}  // namespace candor::cpu::CANDOR_ISA
