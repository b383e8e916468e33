// What must hold of every model file that a reader has accepted. A breach aborts.
#pragma once

#include <cstdlib>
#include <numeric>
#include <span>

#include "formats/gguf.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"

namespace candor {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Extents lie inside their files, do not overlap, and add up to the tensor's size, which is that of its shape.
inline void check_tensors(std::span<const TensorInfo> tensors, std::span<const std::uint64_t> file_sizes) {
  for (const TensorInfo& tensor : tensors) {
    std::uint64_t total = 0;
    for (const TensorExtent& extent : tensor.extents) {
      require(extent.file < file_sizes.size());
      require(extent.offset <= file_sizes[extent.file] && extent.size <= file_sizes[extent.file] - extent.offset);
      total += extent.size;
    }
    require(total == tensor.bytes);
    require(padded_bytes(tensor.encoding, tensor.shape, tensor.layout, "tensor") == tensor.bytes);
  }
  check_no_overlap(tensors, "accepted");
}

inline void check_accepted_gguf(std::span<const std::byte> file) {
  const GgufContent content = parse_gguf(file, "input");
  const std::uint64_t size = file.size();
  check_tensors(content.tensors, std::span(&size, 1));
  (void)content.metadata.to_json();
}

inline void check_accepted_safetensors(std::span<const std::byte> file) {
  const SafetensorsContent content = parse_safetensors(file, "input");
  const std::uint64_t size = file.size();
  check_tensors(content.tensors, std::span(&size, 1));
}

inline void check_accepted_manifest(std::string_view text) {
  const Manifest manifest = parse_manifest(text, "input");
  std::vector<std::uint64_t> sizes;
  for (const ManifestShard& shard : manifest.shards) sizes.push_back(shard.size);
  check_tensors(manifest.tensors, sizes);
}

}  // namespace candor
