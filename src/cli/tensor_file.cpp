#include "cli/tensor_file.h"

#include <cstddef>

#include "base/file.h"

namespace candor::cli {

void write_tensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                   const SafetensorsMetadata& metadata) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& tensor : tensors) {
    TensorInfo& info = infos.emplace_back();
    info.name = tensor.name;
    info.encoding = Encoding::f32;
    info.shape = tensor.shape;
  }
  const OutputLayout layout = layout_safetensors(std::move(infos), metadata, UINT64_MAX);
  std::string content = layout.files.front().header;
  content.reserve(layout.total_bytes());
  for (const NamedTensor& tensor : tensors) {
    const auto bytes = std::as_bytes(tensor.values);
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  write_file_atomically(path, content);
}

}  // namespace candor::cli
