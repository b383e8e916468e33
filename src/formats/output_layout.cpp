#include "formats/output_layout.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"

namespace candor {

OutputLayout layout_shards(std::vector<TensorInfo> tensors, std::uint64_t shard_bytes) {
  if (shard_bytes == 0) fail(ErrorCode::usage, "the shard size is 0 bytes; it must be at least 1");
  OutputLayout layout;
  layout.tensors = std::move(tensors);
  std::uint64_t position = 0;  // in the concatenation of all shards
  for (TensorInfo& tensor : layout.tensors) {
    tensor.extents.clear();
    const std::uint64_t end = checked_add(position, tensor.bytes, tensor.name);
    if (end / shard_bytes >= limits::shards)
      fail(ErrorCode::usage, "{} bytes in shards of {} are more than {} shards; choose larger shards", end, shard_bytes,
           limits::shards);
    while (position < end) {
      const std::uint64_t offset = position % shard_bytes;
      const std::uint64_t size = std::min(end - position, shard_bytes - offset);
      tensor.extents.push_back({static_cast<std::uint32_t>(position / shard_bytes), offset, size});
      position += size;
    }
  }
  if (position == 0) fail(ErrorCode::format, "the model has no tensors to write");
  for (std::uint64_t begin = 0; begin < position; begin += shard_bytes)
    layout.files.push_back(
        {fmt::format("shard_{:05}.bin", layout.files.size()), "", std::min(shard_bytes, position - begin)});
  return layout;
}

}  // namespace candor
