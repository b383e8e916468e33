// Products with the weights of chosen experts (mixture of experts, Shazeer et al. 2017). experts[r][j] names the expert
// of row r's j-th choice; dst[r] holds the choices' results side by side, N columns each. What an expert reads of row r
// is all of it (inputGroups 1) or the j-th of perToken equal parts.
//
// Rows are gathered by expert, so that each expert's weight is read once, multiplied, and scattered. Each result is the
// matrix product's own expression (matmul_float.h, matmul_a8_*.h), which does not depend on the number of rows, hence
// not on what other tokens chose. An expert outside the list gives NaNs.
#pragma once

#include "kernels/cpu/activations.h"
#include "kernels/cpu/matmul_a8_256.h"
#include "kernels/cpu/matmul_a8_32.h"
#include "kernels/cpu/matmul_float.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA {

/// Plain activations: a part is a range of the row.
struct PlainParts {
  CANDOR_INLINE static void copy(const std::byte* source, std::uint32_t, std::uint32_t part, std::uint32_t cols,
                                 std::byte* out) {
    __builtin_memcpy(out, source + std::size_t{part} * cols * sizeof(float), std::size_t{cols} * sizeof(float));
  }
};

/// Quantized activations: a part has values, scales and sums, each a range of the row's.
template <typename Layout>
struct QuantizedParts {
  CANDOR_INLINE static void copy(const std::byte* source, std::uint32_t source_cols, std::uint32_t part,
                                 std::uint32_t cols, std::byte* out) {
    const std::size_t first = std::size_t{part} * cols;
    const std::size_t scale_bytes = cols / Layout::kBlock * sizeof(float);
    const std::size_t sum_bytes = cols / Layout::kSumSpan * sizeof(typename Layout::Sum);
    __builtin_memcpy(out, source + first, cols);
    __builtin_memcpy(out + scales_offset<Layout>(cols),
                     source + scales_offset<Layout>(source_cols) + part * scale_bytes, scale_bytes);
    __builtin_memcpy(out + sums_offset<Layout>(cols), source + sums_offset<Layout>(source_cols) + part * sum_bytes,
                     sum_bytes);
  }
};

CANDOR_INLINE std::uint64_t aligned64(std::uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

template <typename Matmul, typename Parts>
class ExpertMatmul {
 public:
  static std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {
    const std::uint64_t choices = std::uint64_t{shapes.rows} * integer(constants, 1);
    const std::uint32_t groups = integer(constants, 2);
    const std::uint64_t in_bytes = aligned64(std::uint64_t{shapes.src_cols} / groups * sizeof(float));
    const std::uint64_t out_bytes = aligned64(std::uint64_t{shapes.dst_cols} / integer(constants, 1) * sizeof(float));
    return order_bytes(choices, integer(constants, 0)) + choices * (in_bytes + out_bytes) +
           Matmul::scratch_bytes(shapes, constants);
  }

  /// The experts' weights are packed as the matrix product's.
  static void run(const KernelArguments& arguments);

 private:
  explicit ExpertMatmul(const KernelArguments& arguments)
      : arguments_(arguments),
        x_(input(arguments, 0)),
        experts_(input(arguments, 1)),
        expert_count_(static_cast<std::uint32_t>(arguments.weights.size())),
        per_token_(experts_.cols),
        groups_(integer(arguments.constants, 2)),
        in_cols_(x_.cols / groups_),
        out_cols_(arguments.dst.cols / per_token_) {
    const std::uint64_t choices = std::uint64_t{x_.rows} * per_token_;
    std::byte* at = arguments.scratch.data();
    order_ = reinterpret_cast<std::uint32_t*>(at);
    begin_ = order_ + choices;
    at += order_bytes(choices, expert_count_);
    gathered_ = {at, 0, in_cols_, aligned64(std::uint64_t{in_cols_} * sizeof(float)), x_.encoding};
    at += choices * gathered_.row_bytes;
    results_ = {at, 0, out_cols_, aligned64(std::uint64_t{out_cols_} * sizeof(float)), Encoding::f32};
    at += choices * results_.row_bytes;
    rest_ = {at, arguments.scratch.size() - static_cast<std::size_t>(at - arguments.scratch.data())};
  }

  /// Choices in order of expert, and where each expert's begin; the last entry counts those of no expert.
  static std::uint64_t order_bytes(std::uint64_t choices, std::uint64_t experts) {
    return aligned64((choices + experts + 2) * sizeof(std::uint32_t));
  }

  [[nodiscard]] std::uint32_t expert(std::uint32_t choice) const {
    const std::uint32_t chosen = row<const std::uint32_t>(experts_, choice / per_token_)[choice % per_token_];
    return chosen < expert_count_ ? chosen : expert_count_;
  }

  void sort_choices() {
    const std::uint32_t choices = x_.rows * per_token_;
    for (std::uint32_t e = 0; e < expert_count_ + 2; ++e) begin_[e] = 0;
    for (std::uint32_t choice = 0; choice < choices; ++choice) ++begin_[expert(choice) + 1];
    for (std::uint32_t e = 0; e <= expert_count_; ++e) begin_[e + 1] += begin_[e];
    for (std::uint32_t choice = 0; choice < choices; ++choice) order_[begin_[expert(choice)]++] = choice;
    for (std::uint32_t e = expert_count_ + 1; e > 0; --e) begin_[e] = begin_[e - 1];
    begin_[0] = 0;
  }

  void multiply() {
    sort_choices();
    const std::uint32_t known = begin_[expert_count_];
    for_rows(*arguments_.pool, known, in_cols_, [&](std::uint32_t i, unsigned) {
      const std::uint32_t choice = order_[i];
      Parts::copy(row<const std::byte>(x_, choice / per_token_), x_.cols, groups_ == 1 ? 0 : choice % per_token_,
                  in_cols_, row<std::byte>(gathered_, i));
    });
    for (std::uint32_t e = 0; e < expert_count_; ++e) multiply_expert(e, begin_[e], begin_[e + 1] - begin_[e]);
    for_rows(*arguments_.pool, x_.rows * per_token_, out_cols_, [&](std::uint32_t i, unsigned) {
      const std::uint32_t choice = order_[i];
      float* out = row<float>(arguments_.dst, choice / per_token_) + std::size_t{choice % per_token_} * out_cols_;
      if (i < known) {
        __builtin_memcpy(out, row<const float>(results_, i), std::size_t{out_cols_} * sizeof(float));
      } else {
        for (std::uint32_t n = 0; n < out_cols_; ++n) out[n] = __builtin_nanf("");
      }
    });
  }

  void multiply_expert(std::uint32_t e, std::uint32_t first, std::uint32_t rows) {
    // An expert takes at most one choice of a token as top_k gives them; any more are multiplied in turns, for which
    // the scratch memory is laid out.
    for (std::uint32_t done = 0; done < rows;) {
      const std::uint32_t count = rows - done < x_.rows ? rows - done : x_.rows;
      Matrix x = gathered_;
      x.data += std::uint64_t{first + done} * x.row_bytes;
      x.rows = count;
      KernelArguments part = arguments_;
      part.inputs = {&x, 1};
      part.weights = {arguments_.weights.data() + e, 1};
      part.dst = results_;
      part.dst.data += std::uint64_t{first + done} * results_.row_bytes;
      part.dst.rows = count;
      part.scratch = rest_;
      Matmul::run(part);
      done += count;
    }
  }

  const KernelArguments& arguments_;
  const Matrix& x_;
  const Matrix& experts_;
  std::uint32_t expert_count_, per_token_, groups_, in_cols_, out_cols_;
  std::uint32_t* order_;
  std::uint32_t* begin_;
  Matrix gathered_, results_;
  std::span<std::byte> rest_;
};

template <typename Matmul, typename Parts>
void ExpertMatmul<Matmul, Parts>::run(const KernelArguments& arguments) {
  if (arguments.dst.rows != 0) ExpertMatmul(arguments).multiply();
}

// Compiled in expert_matmul.cpp.
extern template class ExpertMatmul<FloatMatmul<F32Element>, PlainParts>;
extern template class ExpertMatmul<FloatMatmul<F16Element>, PlainParts>;
extern template class ExpertMatmul<FloatMatmul<Bf16Element>, PlainParts>;
extern template class ExpertMatmul<IntegerMatmul<Q8_0Panel>, QuantizedParts<Activations32>>;
extern template class ExpertMatmul<IntegerMatmul<Q4_0Panel>, QuantizedParts<Activations32>>;
extern template class ExpertMatmul<IntegerMatmul<SuperBlockPanel<Q4_K>>, QuantizedParts<Activations256>>;
extern template class ExpertMatmul<IntegerMatmul<SuperBlockPanel<Q5_K>>, QuantizedParts<Activations256>>;
extern template class ExpertMatmul<IntegerMatmul<SuperBlockPanel<Q6_K>>, QuantizedParts<Activations256>>;

}  // namespace candor::cpu::CANDOR_ISA
