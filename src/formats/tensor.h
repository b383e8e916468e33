// A tensor as a file stores it: a name, an encoding, a logical shape, and where its bytes lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/encoding.h"

namespace candor {

/// Part of a tensor's bytes in one file of a model.
struct TensorExtent {
  std::uint32_t file = 0;    ///< index into ModelSource::files()
  std::uint64_t offset = 0;  ///< from the start of that file, in bytes
  std::uint64_t size = 0;    ///< in bytes
};

struct TensorInfo {
  std::string name;
  Encoding encoding = Encoding::f32;
  std::vector<std::uint64_t>
      shape;  ///< outermost dimension first; a matrix is [out, in], whatever the file's own order
  std::vector<TensorExtent> extents;  ///< in order; one, unless an artifact cut the tensor across shards
  std::uint64_t bytes = 0;            ///< sum of the extents

  [[nodiscard]] std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : shape) count *= dimension;  // readers have checked the product
    return count;
  }
};

}  // namespace candor
