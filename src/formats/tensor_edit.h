// What becomes of a tensor on its way to a format that names, shapes, orders or stacks it otherwise, and its values
// after that. Where nothing but places change, bytes are moved and no value is rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor.h"
#include "formats/tensor_encoder.h"

namespace candor {

struct TensorEdit {
  std::string name;
  /// Gets all values in row-major order and may change them in place (a norm's offset).
  std::function<void(std::span<float> values, std::span<const std::uint64_t> shape)> apply = {};
  /// Row i of the output is this row of the source; empty: as they are.
  std::vector<std::uint32_t> row_order = {};
  std::optional<Encoding> encoding = {};  ///< in place of the mix's
  bool left_out = false;                  ///< the output does not have it
  bool transposed = false;                ///< a matrix [a, b] becomes [b, a]
  std::vector<std::uint64_t> shape = {};  ///< of as many elements, before it is transposed; empty: the source's
  /// Of several tensors of one shape under one name, [parts, shape …] in the output: how many there are, and which this
  /// is. 0: it is not one of several.
  std::uint32_t parts = 0, part = 0;

  /// Whether values change or leave their rows, so that they must be decoded and encoded again.
  [[nodiscard]] bool rewrites_values() const { return apply || transposed; }
};

/// The shape that a tensor has after its edit, without `parts`. Throws Error(internal) for an edit that does not fit.
[[nodiscard]] std::vector<std::uint64_t> edited_shape(const TensorInfo& tensor, const TensorEdit& edit);

/// The stored bytes with rows in the order of the edit, which rewrites no values. The tensor's layout is rows.
[[nodiscard]] std::vector<std::byte> edited_bytes(std::span<const std::byte> stored, const TensorEdit& edit);

/// The values of the edited tensor in row-major order. `stored` must outlive the reader; where values must be put in
/// another order, the reader holds all of them.
[[nodiscard]] ElementReader edited_elements(const TensorInfo& tensor, std::span<const std::byte> stored,
                                            const TensorEdit& edit);

/// The values of tensors of `elements` each, one after the other.
[[nodiscard]] ElementReader stacked_elements(std::vector<ElementReader> parts, std::uint64_t elements);

}  // namespace candor
