#include "formats/tensor_edit.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"

namespace candor {
namespace {

/// `values`, whose rows are `width` long, with row i taken from row order[i].
template <typename T>
std::vector<T> reordered(std::span<const T> values, std::span<const std::uint32_t> order, std::size_t width) {
  std::vector<T> out;
  out.reserve(values.size());
  for (const std::uint32_t row : order) {
    const auto from = values.subspan(row * width, width);
    out.insert(out.end(), from.begin(), from.end());
  }
  return out;
}

std::vector<float> transpose(std::span<const float> values, std::uint64_t rows, std::uint64_t cols) {
  std::vector<float> out(values.size());
  for (std::uint64_t row = 0; row < rows; ++row)
    for (std::uint64_t col = 0; col < cols; ++col) out[col * rows + row] = values[row * cols + col];
  return out;
}

/// Each row exactly once, or the caller's edit is wrong.
void check_order(std::span<const std::uint32_t> order, const TensorInfo& tensor) {
  std::vector<bool> seen(tensor.shape.empty() ? 0 : tensor.shape[0]);
  bool fits = order.size() == seen.size();
  for (const std::uint32_t row : order) {
    fits = fits && row < seen.size() && !seen[row];
    if (fits) seen[row] = true;
  }
  if (!fits) fail(ErrorCode::internal, "tensor \"{}\": the order of rows is none", printable(tensor.name));
}

/// All values in the order of the logical shape.
std::vector<float> all_values(const TensorInfo& tensor, std::span<const std::byte> stored) {
  std::vector<float> values(tensor.elements());
  if (tensor.layout != TensorLayout::columns) {
    stored_elements(tensor, stored)(0, values);
    return values;
  }
  TensorInfo by_column = tensor;
  by_column.layout = TensorLayout::rows;
  std::swap(by_column.shape[0], by_column.shape[1]);
  stored_elements(by_column, stored)(0, values);
  return transpose(values, tensor.shape[1], tensor.shape[0]);
}

}  // namespace

std::vector<std::uint64_t> edited_shape(const TensorInfo& tensor, const TensorEdit& edit) {
  if (!edit.row_order.empty()) check_order(edit.row_order, tensor);
  std::vector<std::uint64_t> shape = edit.shape.empty() ? tensor.shape : edit.shape;
  if (checked_elements(shape, tensor.name) != tensor.elements() || (edit.transposed && shape.size() != 2))
    fail(ErrorCode::internal, "tensor \"{}\" of shape {} cannot become {}{}", printable(tensor.name),
         print_shape(tensor.shape), print_shape(shape), edit.transposed ? ", transposed" : "");
  if (edit.transposed) std::swap(shape[0], shape[1]);
  return shape;
}

std::vector<std::byte> edited_bytes(std::span<const std::byte> stored, const TensorEdit& edit) {
  if (edit.row_order.empty()) return {stored.begin(), stored.end()};
  return reordered(stored, edit.row_order, stored.size() / edit.row_order.size());
}

ElementReader edited_elements(const TensorInfo& tensor, std::span<const std::byte> stored, const TensorEdit& edit) {
  if (!edit.rewrites_values() && edit.row_order.empty() && tensor.layout != TensorLayout::columns)
    return stored_elements(tensor, stored);
  std::vector<float> values = all_values(tensor, stored);
  if (!edit.row_order.empty())
    values = reordered(std::span<const float>(values), edit.row_order, values.size() / edit.row_order.size());
  if (edit.transposed) values = transpose(values, tensor.shape[0], tensor.shape[1]);
  if (edit.apply) edit.apply(values, edited_shape(tensor, edit));
  return
      [all = std::make_shared<const std::vector<float>>(std::move(values))](std::uint64_t first, std::span<float> out) {
        std::copy_n(all->begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
      };
}

ElementReader stacked_elements(std::vector<ElementReader> parts, std::uint64_t elements) {
  if (parts.size() == 1) return std::move(parts.front());
  return [parts = std::move(parts), elements](std::uint64_t first, std::span<float> out) {
    while (!out.empty()) {
      const std::uint64_t skipped = first % elements;
      const std::uint64_t taken = std::min<std::uint64_t>(elements - skipped, out.size());
      parts[first / elements](skipped, out.first(taken));
      first += taken;
      out = out.subspan(taken);
    }
  };
}

}  // namespace candor
