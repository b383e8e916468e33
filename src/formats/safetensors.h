// Safetensors (huggingface/safetensors, the format section of its README): an 8-byte header length, a JSON header,
// data. The header is read by a streaming parser into the tensor directory, so that a hostile header of 100 MB costs no
// tree of JSON values. All of the format's own rules are checked: the cap, no repeated name, no gap, no overlap,
// nothing left over. Not a goal: reading the data; the file is mapped.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensor.h"

namespace candor {

struct SafetensorsContent {
  std::vector<TensorInfo> tensors;  ///< in order of their data; extents with file = 0 and absolute offsets
  std::vector<std::pair<std::string, std::string>> metadata;  ///< of "__metadata__", in file order
};

/// Parses a mapped safetensors file. `label` (the path) starts every message. Throws Error(format), or
/// Error(unsupported) for a dtype without an Encoding.
[[nodiscard]] SafetensorsContent parse_safetensors(std::span<const std::byte> file, std::string_view label);

}  // namespace candor
