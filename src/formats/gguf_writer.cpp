#include "formats/gguf_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"
#include "formats/gguf_types.h"

namespace candor {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::uint32_t kDefaultAlignment = 32;
constexpr std::size_t kLongestName = 63;  // GGML_MAX_NAME, its final NUL included, is 64

template <typename T>
void append(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

void append_string(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out += text;
}

void append_array_head(std::string& out, GgufType element, std::uint64_t count) {
  append(out, static_cast<std::uint32_t>(element));
  append(out, count);
}

void append_tensor(std::string& out, const TensorInfo& tensor, std::uint64_t data_offset) {
  append_string(out, tensor.name);
  append(out, static_cast<std::uint32_t>(tensor.shape.size()));
  for (auto dimension = tensor.shape.rbegin(); dimension != tensor.shape.rend(); ++dimension) append(out, *dimension);
  append(out, ggml_type(tensor.encoding));
  append(out, data_offset);
}

void check_tensor(TensorInfo& tensor) {
  const std::string what = fmt::format("tensor \"{}\"", printable(tensor.name));
  if (tensor.shape.size() > limits::tensor_rank)
    fail(ErrorCode::format, "{}: shape {} has more dimensions than GGUF's {}", what, print_shape(tensor.shape),
         limits::tensor_rank);
  if (tensor.name.empty() || tensor.name.size() > kLongestName)
    fail(ErrorCode::unsupported, "{}: its name has {} bytes; readers of GGUF take at most {}", what, tensor.name.size(),
         kLongestName);
  tensor.bytes = stored_bytes(tensor.encoding, tensor.shape, what);
  if (tensor.bytes == 0) fail(ErrorCode::format, "{}: shape {} has no elements", what, print_shape(tensor.shape));
}

}  // namespace

GgufPairs::GgufPairs(const GgufMetadata& metadata) {
  for (const std::string& key : metadata.keys()) set(key, *metadata.find(key));
}

std::string& GgufPairs::place(std::string_view key, GgufType type) {
  const auto found = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.key == key; });
  if (found == pairs_.end()) return pairs_.emplace_back(Pair{std::string(key), type, {}}).value;
  found->type = type;
  found->value.clear();
  return found->value;
}

std::optional<std::string> GgufPairs::string(std::string_view key) const {
  for (const Pair& pair : pairs_)
    if (pair.key == key && pair.type == GgufType::string) return pair.value.substr(sizeof(std::uint64_t));
  return std::nullopt;
}

void GgufPairs::set_boolean(std::string_view key, bool value) {
  append(place(key, GgufType::boolean), static_cast<std::uint8_t>(value));
}
void GgufPairs::set_u16(std::string_view key, std::uint16_t value) {
  append(place(key, GgufType::u16), value);
}
void GgufPairs::set_u32(std::string_view key, std::uint32_t value) {
  append(place(key, GgufType::u32), value);
}
void GgufPairs::set_i32(std::string_view key, std::int32_t value) {
  append(place(key, GgufType::i32), value);
}
void GgufPairs::set_u64(std::string_view key, std::uint64_t value) {
  append(place(key, GgufType::u64), value);
}
void GgufPairs::set_f32(std::string_view key, float value) {
  append(place(key, GgufType::f32), value);
}
void GgufPairs::set_string(std::string_view key, std::string_view value) {
  append_string(place(key, GgufType::string), value);
}

void GgufPairs::set_strings(std::string_view key, std::span<const std::string> values) {
  std::string& out = place(key, GgufType::array);
  append_array_head(out, GgufType::string, values.size());
  for (const std::string& value : values) append_string(out, value);
}

void GgufPairs::set_f32s(std::string_view key, std::span<const float> values) {
  std::string& out = place(key, GgufType::array);
  append_array_head(out, GgufType::f32, values.size());
  for (const float value : values) append(out, value);
}

void GgufPairs::set_booleans(std::string_view key, const std::vector<bool>& values) {
  std::string& out = place(key, GgufType::array);
  append_array_head(out, GgufType::boolean, values.size());
  for (const bool value : values) append(out, static_cast<std::uint8_t>(value));
}

void GgufPairs::set_i32s(std::string_view key, std::span<const std::int32_t> values) {
  std::string& out = place(key, GgufType::array);
  append_array_head(out, GgufType::i32, values.size());
  for (const std::int32_t value : values) append(out, value);
}

void GgufPairs::set(std::string_view key, const GgufValue& value) {
  std::string& out = place(key, value.type);
  if (value.type == GgufType::array) append_array_head(out, value.element, value.count);
  out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void GgufPairs::remove(std::string_view key) {
  std::erase_if(pairs_, [&](const Pair& pair) { return pair.key == key; });
}

std::string GgufPairs::bytes() const {
  std::string out;
  for (const Pair& pair : pairs_) {
    append_string(out, pair.key);
    append(out, static_cast<std::uint32_t>(pair.type));
    out += pair.value;
  }
  return out;
}

std::uint32_t ggml_type(Encoding encoding) {
  const auto found = std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(),
                                  [&](const GgmlType& type) { return type.encoding == encoding; });
  if (found == kGgmlTypes.end())
    fail(ErrorCode::unsupported, "GGUF has no tensor type for {}; choose another, such as f16", to_string(encoding));
  return found->number;
}

OutputLayout layout_gguf(std::string file_name, GgufPairs pairs, std::vector<TensorInfo> tensors,
                         std::uint32_t alignment) {
  if (!std::has_single_bit(alignment))
    fail(ErrorCode::usage, "the alignment is {}; it must be a power of two", alignment);
  if (alignment != kDefaultAlignment) pairs.set_u32("general.alignment", alignment);
  std::string header = "GGUF";
  append(header, kVersion);
  append(header, std::uint64_t{tensors.size()});
  append(header, pairs.count());
  header += pairs.bytes();
  std::uint64_t position = 0;  // in the data section
  for (TensorInfo& tensor : tensors) {
    check_tensor(tensor);
    position = checked_align(position, alignment, tensor.name);
    append_tensor(header, tensor, position);
    tensor.extents = {{0, position, tensor.bytes}};
    position += tensor.bytes;
  }
  header.resize(checked_align(header.size(), alignment, file_name), '\0');
  for (TensorInfo& tensor : tensors) tensor.extents.front().offset += header.size();
  const std::uint64_t size = checked_align(header.size() + position, alignment, file_name);
  OutputLayout layout;
  layout.files.push_back({std::move(file_name), std::move(header), size});
  layout.tensors = std::move(tensors);
  return layout;
}

}  // namespace candor
