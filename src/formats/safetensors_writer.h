// Safetensors headers, for one file or for shards with an index.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/output_layout.h"

namespace candor {

/// As Hugging Face's own tools cut models.
inline constexpr std::uint64_t kSafetensorsFileBytes = 5'000'000'000;

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

/// model.safetensors, or model-00001-of-0000N.safetensors, … where the data exceed `file_bytes`; whole tensors in each.
/// Every header is padded with spaces so that data begin at a multiple of 64. `bytes` and extents are filled in. Throws
/// Error(unsupported) for a tensor in a block encoding, which the format cannot hold.
[[nodiscard]] OutputLayout layout_safetensors(std::vector<TensorInfo> tensors, const SafetensorsMetadata& metadata,
                                              std::uint64_t file_bytes = kSafetensorsFileBytes);

/// The text of model.safetensors.index.json for a layout of several files.
[[nodiscard]] std::string safetensors_index(const OutputLayout& layout);

}  // namespace candor
