// A tensor as a file stores it: a name, an encoding, a logical shape, and where its bytes lie. The checks that every
// reader makes on a directory of tensors stand here once: sizes from shapes, and extents that do not overlap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/encoding.h"

namespace candor {

/// Part of a tensor's bytes in one file of a model.
struct TensorExtent {
  std::uint32_t file = 0;    ///< index into ModelSource::files()
  std::uint64_t offset = 0;  ///< from the start of that file, in bytes
  std::uint64_t size = 0;    ///< in bytes
};

/// How the blocks of a block encoding run through a tensor. GGUF and safetensors know `rows` only.
enum class TensorLayout : std::uint8_t {
  rows,     ///< each row (the last dimension) is whole blocks, padded with zeros where a format allows that
  columns,  ///< a matrix [out, in] stored transposed: rows of [in, out]; the shape stays [out, in]
  flat      ///< all elements in one run, which only its last block pads
};

[[nodiscard]] std::string_view to_string(TensorLayout layout);

struct TensorInfo {
  std::string name;
  Encoding encoding = Encoding::f32;
  std::vector<std::uint64_t>
      shape;  ///< outermost dimension first; a matrix is [out, in], whatever the file's own order
  std::vector<TensorExtent> extents;  ///< in order; one, unless an artifact cut the tensor across shards
  std::uint64_t bytes = 0;            ///< sum of the extents
  TensorLayout layout = TensorLayout::rows;
  std::string sha256;  ///< of the bytes, 64 hexadecimal digits, where the file states it (artifacts); else empty

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : shape) count *= dimension;  // readers have checked the product
    return count;
  }
};

/// The product of the dimensions (1 for none). Throws Error(format), naming `what`, above limits::tensor_elements.
[[nodiscard]] std::uint64_t checked_elements(std::span<const std::uint64_t> shape, std::string_view what);

/// Bytes of a tensor whose rows are whole blocks; the rule of GGUF and safetensors. Throws Error(format), naming
/// `what`, if a row is not whole blocks or a number overflows.
[[nodiscard]] std::uint64_t stored_bytes(Encoding encoding, std::span<const std::uint64_t> shape,
                                         std::string_view what);

/// Bytes of a tensor in this layout, with partial blocks padded; the rule of artifacts.
[[nodiscard]] std::uint64_t padded_bytes(Encoding encoding, std::span<const std::uint64_t> shape, TensorLayout layout,
                                         std::string_view what);

/// Throws Error(format), starting with `label` and naming two tensors, if any two extents share a byte.
void check_no_overlap(std::span<const TensorInfo> tensors, std::string_view label);

/// A shape as messages print it: "[2, 3]".
[[nodiscard]] std::string print_shape(std::span<const std::uint64_t> shape);

}  // namespace candor
