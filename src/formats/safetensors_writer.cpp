#include "formats/safetensors_writer.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "formats/safetensors_types.h"

namespace candor {
namespace {

constexpr std::uint64_t kHeaderLengthBytes = 8;
constexpr std::uint64_t kDataAlignment = 64;

std::string_view dtype_of(const TensorInfo& tensor) {
  const auto found = std::find_if(kSafetensorsDtypes.begin(), kSafetensorsDtypes.end(),
                                  [&](const SafetensorsDtype& dtype) { return dtype.encoding == tensor.encoding; });
  if (found == kSafetensorsDtypes.end())
    fail(ErrorCode::unsupported,
         "tensor \"{}\" is {}, which safetensors cannot hold; convert to f32, f16 or bf16, or to an artifact or GGUF",
         printable(tensor.name), to_string(tensor.encoding));
  return found->name;
}

/// The header of one file, its length field included. Extents are relative to the data.
std::string make_header(const SafetensorsMetadata& metadata, const std::vector<const TensorInfo*>& tensors) {
  Json header = Json::object();
  auto& members = static_cast<std::vector<Json::object_t::value_type>&>(header.get_ref<Json::object_t&>());
  if (!metadata.empty()) {
    Json pairs = Json::object();
    for (const auto& [key, value] : metadata) pairs[key] = value;
    members.emplace_back("__metadata__", std::move(pairs));
  }
  for (const TensorInfo* tensor : tensors) {
    const TensorExtent& extent = tensor->extents.front();
    members.emplace_back(tensor->name, Json{{"dtype", dtype_of(*tensor)},
                                            {"shape", tensor->shape},
                                            {"data_offsets", {extent.offset, extent.offset + extent.size}}});
  }
  std::string text = header.dump();
  text.resize(
      checked_align(kHeaderLengthBytes + text.size(), kDataAlignment, "safetensors header") - kHeaderLengthBytes, ' ');
  if (text.size() > limits::safetensors_header)
    fail(ErrorCode::format, "the safetensors header has {} bytes, more than the format's limit of {}", text.size(),
         limits::safetensors_header);
  const std::uint64_t length = text.size();
  std::string out(kHeaderLengthBytes, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

std::string file_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

}  // namespace

OutputLayout layout_safetensors(std::vector<TensorInfo> tensors, const SafetensorsMetadata& metadata,
                                std::uint64_t file_bytes) {
  OutputLayout layout;
  layout.tensors = std::move(tensors);
  std::vector<std::vector<const TensorInfo*>> files(1);
  std::uint64_t position = 0;
  for (TensorInfo& tensor : layout.tensors) {
    tensor.bytes = stored_bytes(tensor.encoding, tensor.shape, fmt::format("tensor \"{}\"", printable(tensor.name)));
    if (position > 0 && (position >= file_bytes || tensor.bytes > file_bytes - position)) {
      files.emplace_back();
      position = 0;
    }
    tensor.extents = {{static_cast<std::uint32_t>(files.size() - 1), position, tensor.bytes}};
    files.back().push_back(&tensor);
    position += tensor.bytes;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string header = make_header(metadata, files[i]);
    std::uint64_t size = header.size();
    for (const TensorInfo* tensor : files[i]) size += tensor->bytes;
    layout.files.push_back({file_name(i, files.size()), std::move(header), size});
  }
  for (TensorInfo& tensor : layout.tensors)
    for (TensorExtent& extent : tensor.extents) extent.offset += layout.files[extent.file].header.size();
  return layout;
}

std::string safetensors_index(const OutputLayout& layout) {
  std::uint64_t total = 0;
  Json map = Json::object();
  auto& members = static_cast<std::vector<Json::object_t::value_type>&>(map.get_ref<Json::object_t&>());
  for (const TensorInfo& tensor : layout.tensors) {
    total += tensor.bytes;
    members.emplace_back(tensor.name, layout.files[tensor.extents.front().file].name);
  }
  const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
  return index.dump(2) + "\n";
}

}  // namespace candor
