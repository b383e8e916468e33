// Safetensors files of float32 values that a subcommand computed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/safetensors_writer.h"

namespace candor::cli {

struct NamedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::span<const float> values;  ///< as many as `shape` has elements
};

/// Replaces the file at once. Throws Error(io), Error(format) where the format cannot hold it.
void write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                   const SafetensorsMetadata& metadata);

}  // namespace candor::cli
