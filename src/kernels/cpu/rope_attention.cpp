// Rotates the queries and keys of a packed row [q | k | v], then attends: rope.h's and attention.h's own code, hence
// their bits. The rotated queries go to dst, where attention reads them in place, the rotated keys to scratch memory.
#include "kernels/cpu/attention.h"
#include "kernels/cpu/entries.h"
#include "kernels/cpu/rope.h"

namespace candor::cpu::CANDOR_ISA::rope_attention {
namespace {

// Constants: rope's, then attention's without the width of a head, which they share.
constexpr std::size_t kHeadDim = 0;
constexpr std::size_t kRopeConstants = 4;
constexpr std::size_t kHeads = 4;
constexpr std::size_t kKvHeads = 5;
constexpr std::size_t kAttentionConstants = 7;

Constants rope_constants(const Constants& constants) {
  return {constants.values, constants.begin.first(kRopeConstants + 1)};
}

/// Attention's constants, in its order.
struct AttentionConstants {
  double values[kAttentionConstants];
  std::uint32_t begin[kAttentionConstants + 1];

  explicit AttentionConstants(const Constants& c)
      : values{number(c, kHeads), number(c, kKvHeads), number(c, kHeadDim), number(c, 6),
               number(c, 7),      number(c, 8),        number(c, 9)},
        begin{0, 1, 2, 3, 4, 5, 6, 7} {}

  [[nodiscard]] Constants view() const { return {values, begin}; }
};

std::uint64_t key_row_bytes(const Constants& constants) {
  return (std::uint64_t{integer(constants, kKvHeads)} * integer(constants, kHeadDim) * sizeof(float) + 63) / 64 * 64;
}

/// Both use the memory behind the keys, one after the other.
std::uint64_t inner_scratch(const KernelShapes& shapes, const Constants& constants) {
  const std::uint64_t rotates = rope::rotation_scratch(shapes, rope_constants(constants));
  const std::uint64_t attends = attention::scratch(shapes, AttentionConstants(constants).view());
  return rotates > attends ? rotates : attends;
}

}  // namespace

std::uint64_t kv_page_bytes(std::uint32_t positions, Encoding encoding, const Constants& constants) {
  return attention::page_bytes(positions, encoding, AttentionConstants(constants).view());
}

std::uint64_t scratch_bytes(const KernelShapes& shapes, const Constants& constants) {
  return shapes.rows * key_row_bytes(constants) + inner_scratch(shapes, constants);
}

void run(const KernelArguments& arguments) {
  const Constants& constants = arguments.constants;
  const std::uint32_t head_dim = integer(constants, kHeadDim);
  const std::uint32_t kv_cols = integer(constants, kKvHeads) * head_dim;
  const Matrix& packed = input(arguments, 0);
  const auto columns = [&](std::uint32_t first, std::uint32_t count) {
    Matrix part = packed;
    part.data += std::uint64_t{first} * sizeof(float);
    part.cols = count;
    return part;
  };
  const std::uint32_t q_cols = integer(constants, kHeads) * head_dim;
  const Matrix k = columns(q_cols, kv_cols);
  const Matrix rotated_k{arguments.scratch.data(), packed.rows, kv_cols, key_row_bytes(constants), Encoding::f32};

  KernelArguments turn = arguments;
  turn.constants = rope_constants(constants);
  turn.scratch = arguments.scratch.subspan(packed.rows * rotated_k.row_bytes);
  const Matrix q[] = {columns(0, q_cols)};
  turn.inputs = q;
  rope::rotate(turn);
  const Matrix keys[] = {k};
  turn.inputs = keys;
  turn.dst = rotated_k;
  rope::rotate(turn);

  KernelArguments attending = arguments;
  const AttentionConstants settings(constants);
  attending.constants = settings.view();
  attending.scratch = turn.scratch;
  const Matrix operands[] = {arguments.dst, rotated_k, columns(q_cols + kv_cols, kv_cols)};
  attending.inputs = operands;
  attention::attend(attending);
}

}  // namespace candor::cpu::CANDOR_ISA::rope_attention
