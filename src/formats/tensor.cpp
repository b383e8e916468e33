#include "formats/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"

namespace candor {

std::string_view to_string(TensorLayout layout) {
  switch (layout) {
    case TensorLayout::rows:
      return "row";
    case TensorLayout::columns:
      return "col";
    case TensorLayout::flat:
      return "flat";
  }
  return "unknown";
}

std::uint64_t checked_elements(std::span<const std::uint64_t> shape, std::string_view what) {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape) count = checked_mul(count, dimension, what);
  if (count > limits::tensor_elements)
    fail(ErrorCode::format, "{}: shape {} has {} elements, more than the limit of {}", what, print_shape(shape), count,
         limits::tensor_elements);
  return count;
}

std::uint64_t stored_bytes(Encoding encoding, std::span<const std::uint64_t> shape, std::string_view what) {
  const std::uint64_t elements = checked_elements(shape, what);
  if (elements == 0) return 0;
  const std::uint64_t row = shape.empty() ? 1 : shape.back();
  return checked_mul(elements / row, encoded_bytes(encoding, row, what), what);
}

std::uint64_t padded_bytes(Encoding encoding, std::span<const std::uint64_t> shape, TensorLayout layout,
                           std::string_view what) {
  const std::uint64_t elements = checked_elements(shape, what);
  if (elements == 0) return 0;
  const EncodingInfo& entry = info(encoding);
  std::uint64_t row = elements;
  if (layout == TensorLayout::rows && !shape.empty()) row = shape.back();
  if (layout == TensorLayout::columns) {
    if (shape.size() != 2)
      fail(ErrorCode::format, "{}: layout col needs a matrix, found shape {}", what, print_shape(shape));
    row = shape.front();
  }
  const std::uint64_t blocks = row / entry.block_size + (row % entry.block_size != 0 ? 1 : 0);
  return checked_mul(elements / row, checked_mul(blocks, entry.block_bytes, what), what);
}

void check_no_overlap(std::span<const TensorInfo> tensors, std::string_view label) {
  struct Piece {
    std::uint32_t file;
    std::uint64_t begin;
    std::uint64_t end;
    const TensorInfo* tensor;
  };
  std::vector<Piece> pieces;
  for (const TensorInfo& tensor : tensors)
    for (const TensorExtent& extent : tensor.extents)
      if (extent.size > 0) pieces.push_back({extent.file, extent.offset, extent.offset + extent.size, &tensor});
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.file != b.file ? a.file < b.file : a.begin < b.begin; });
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const Piece& a = pieces[i - 1];
    const Piece& b = pieces[i];
    if (a.file == b.file && b.begin < a.end)
      fail(ErrorCode::format, "{}: tensor \"{}\" (bytes {} to {}) overlaps tensor \"{}\" (bytes {} to {})", label,
           printable(b.tensor->name), b.begin, b.end, printable(a.tensor->name), a.begin, a.end);
  }
}

std::string print_shape(std::span<const std::uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace candor
