// Where the bytes of a model to be written will lie, known before the first is written: files, each with a header and
// then tensor data, and the tensors' extents in them. The writer (staged_writer.h) needs nothing else, whatever the
// format. Headers of GGUF and safetensors come from gguf_writer.h and safetensors_writer.h; shards have none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/tensor.h"

namespace candor {

struct OutputFile {
  std::string name;
  std::string header;      ///< the file's first bytes
  std::uint64_t size = 0;  ///< in bytes, header and padding included
};

struct OutputLayout {
  std::vector<OutputFile> files;
  std::vector<TensorInfo> tensors;  ///< in the order they are written; an extent's file is an index into `files`

  [[nodiscard]] std::uint64_t total_bytes() const {
    std::uint64_t total = 0;
    for (const OutputFile& file : files) total += file.size;
    return total;
  }
};

inline constexpr std::uint64_t kShardBytes = 64ull << 20;

/// Tensors one after the other, cut into files shard_00000.bin, … of `shard_bytes` bytes (the last is shorter). Each
/// tensor's `bytes` says how many it has. Throws Error(format) where there would be none or more than limits::shards.
[[nodiscard]] OutputLayout layout_shards(std::vector<TensorInfo> tensors, std::uint64_t shard_bytes = kShardBytes);

}  // namespace candor
