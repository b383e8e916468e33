// Rows of a table, by token or by position: dequantize(weight[index]) · scale, as stored (a table tied to the output
// matrix is packed there again; here only the rows in use are touched). An index outside the table gives a row of NaNs.
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/entries.h"
#include "kernels/cpu/operands.h"

namespace candor::cpu::CANDOR_ISA::gather {

namespace {

template <typename Element>
void read_plain(const std::byte* stored, std::uint32_t cols, float* out) {
  for_each_vector(cols, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
    store_first(out + i, load_elements<Element>(stored + std::size_t{i} * Element::kBytes, n), n);
  });
}

struct RowReader {
  std::uint64_t row_bytes;
  void (*read)(const std::byte* stored, std::uint32_t cols, float* out);
};

RowReader reader(Encoding encoding, std::uint64_t cols) {
  switch (encoding) {
    case Encoding::f16:
      return {cols * 2, read_plain<F16Element>};
    case Encoding::bf16:
      return {cols * 2, read_plain<Bf16Element>};
    case Encoding::q8_0:
      return {cols / 32 * Q8_0::kBytes, dequantize_blocks32<Q8_0>};
    case Encoding::q4_0:
      return {cols / 32 * Q4_0::kBytes, dequantize_blocks32<Q4_0>};
    case Encoding::q4_k:
      return {cols / 256 * Q4_K::kBytes, dequantize_blocks256<Q4_K>};
    case Encoding::q5_k:
      return {cols / 256 * Q5_K::kBytes, dequantize_blocks256<Q5_K>};
    case Encoding::q6_k:
      return {cols / 256 * Q6_K::kBytes, dequantize_blocks256<Q6_K>};
    default:
      return {cols * 4, read_plain<F32Element>};
  }
}

}  // namespace

void run(const KernelArguments& arguments) {
  const Weight& table = weight(arguments, 0);
  const Matrix& dst = arguments.dst;
  const F32x16 scale = broadcast(real(arguments.constants, 0));
  const RowReader rows = reader(table.encoding, table.cols);
  const Matrix& indices = input(arguments, 0);
  for_rows(*arguments.pool, dst.rows, dst.cols, [&](std::uint32_t r, unsigned) {
    float* out = row<float>(dst, r);
    const std::uint32_t index = *row<const std::uint32_t>(indices, r);
    const bool exists = index < table.rows;
    if (exists) rows.read(table.data + index * rows.row_bytes, dst.cols, out);
    for_each_vector(dst.cols, [&](std::uint32_t i, auto n) CANDOR_INLINE_LAMBDA {
      const F32x16 values = exists ? load_first(out + i, n) : broadcast(__builtin_nanf(""));
      store_first(out + i, values * scale, n);
    });
  });
}

}  // namespace candor::cpu::CANDOR_ISA::gather
