#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"
#include "formats/file_kind.h"
#include "formats/safetensors_types.h"

namespace candor {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

std::optional<Encoding> find_dtype(std::string_view name) {
  const auto found = std::find_if(kSafetensorsDtypes.begin(), kSafetensorsDtypes.end(),
                                  [&](const SafetensorsDtype& dtype) { return dtype.name == name; });
  if (found == kSafetensorsDtypes.end()) return std::nullopt;
  return found->encoding;
}

/// Receives the header's JSON events. A header is an object of tensors {dtype, shape, data_offsets}, and one object of
/// strings under "__metadata__"; anything else is refused where it stands.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view label) : label_(label) {}

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a boolean"); }
  bool number_float(double, const std::string&) { unexpected("a number that is no unsigned 64-bit integer"); }
  bool number_integer(std::int64_t) { unexpected("a negative number"); }
  bool binary(nlohmann::json::binary_t&) { unexpected("binary data"); }

  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::shape) {
      if (tensor_.shape.size() == limits::safetensors_rank)
        fail(ErrorCode::format, "{}: {} has more than {} dimensions", label_, what(), limits::safetensors_rank);
      tensor_.shape.push_back(value);
    } else if (place_ == Place::offsets) {
      if (offset_count_ == offsets_.size())
        fail(ErrorCode::format, "{}: {} has more than two data_offsets", label_, what());
      offsets_[offset_count_++] = value;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::metadata) {
      content_.metadata.emplace_back(std::move(key_), std::move(value));
    } else if (place_ == Place::tensor && key_ == "dtype") {
      read_dtype(value);
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool key(std::string& value) {
    key_ = std::move(value);
    if (place_ == Place::tensor && key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
      fail(ErrorCode::format, "{}: {} has the unknown field \"{}\"", label_, what(), printable(key_));
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header && key_ == kMetadataKey) {
      if (metadata_seen_) fail(ErrorCode::format, "{}: \"{}\" occurs twice", label_, kMetadataKey);
      metadata_seen_ = true;
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      start_tensor();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::tensor && key_ == "shape" && !shape_seen_) {
      shape_seen_ = true;
      place_ = Place::shape;
    } else if (place_ == Place::tensor && key_ == "data_offsets" && offset_count_ == 0) {
      place_ = Place::offsets;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    fail(ErrorCode::format, "{}: the header is not valid JSON at byte {}; the file is damaged", label_,
         kLengthBytes + position);
  }

  SafetensorsContent take() { return std::move(content_); }

 private:
  enum class Place { outside, header, metadata, tensor, shape, offsets };

  [[nodiscard]] std::string what() const {
    if (place_ == Place::outside) return "the header";
    if (place_ == Place::header || place_ == Place::metadata) return fmt::format("header key \"{}\"", printable(key_));
    return fmt::format("tensor \"{}\"", printable(tensor_.name));
  }

  [[noreturn]] void unexpected(std::string_view found) const {
    const bool in_tensor = place_ == Place::tensor || place_ == Place::shape || place_ == Place::offsets;
    fail(ErrorCode::format, "{}: {}{} has {} where the format does not allow it", label_, what(),
         in_tensor ? fmt::format(", field \"{}\",", printable(key_)) : "", found);
  }

  void start_tensor() {
    if (content_.tensors.size() == limits::tensors)
      fail(ErrorCode::format, "{}: more than {} tensors", label_, limits::tensors);
    if (key_.empty() || key_.size() > limits::name_bytes || key_.find('\0') != std::string::npos)
      fail(ErrorCode::format, "{}: tensor name \"{}\" is empty, longer than {} bytes, or holds a NUL", label_,
           printable(key_), limits::name_bytes);
    tensor_ = {};
    tensor_.name = key_;
    dtype_seen_ = shape_seen_ = false;
    offset_count_ = 0;
    place_ = Place::tensor;
  }

  void read_dtype(const std::string& name) {
    if (dtype_seen_) fail(ErrorCode::format, "{}: {} has two dtypes", label_, what());
    dtype_seen_ = true;
    const auto encoding = find_dtype(name);
    if (!encoding)
      fail(ErrorCode::unsupported, "{}: {} has dtype \"{}\", which is not read here; convert it to F32, F16 or BF16",
           label_, what(), printable(name));
    tensor_.encoding = *encoding;
  }

  void finish_tensor() {
    if (!dtype_seen_ || !shape_seen_ || offset_count_ != 2)
      fail(ErrorCode::format, "{}: {} lacks {}", label_, what(),
           !dtype_seen_ ? "dtype" : (!shape_seen_ ? "shape" : "two data_offsets"));
    if (offsets_[0] > offsets_[1])
      fail(ErrorCode::format, "{}: {} has data_offsets {} to {}, in the wrong order", label_, what(), offsets_[0],
           offsets_[1]);
    const std::string context = fmt::format("{}: {}", label_, what());
    tensor_.bytes = stored_bytes(tensor_.encoding, tensor_.shape, context);
    if (tensor_.bytes != offsets_[1] - offsets_[0])
      fail(ErrorCode::format, "{}: {} {} needs {} bytes, but data_offsets {} to {} give {}", context,
           to_string(tensor_.encoding), print_shape(tensor_.shape), tensor_.bytes, offsets_[0], offsets_[1],
           offsets_[1] - offsets_[0]);
    tensor_.extents = {{0, offsets_[0], tensor_.bytes}};
    content_.tensors.push_back(std::move(tensor_));
  }

  std::string_view label_;
  Place place_ = Place::outside;
  std::string key_;
  TensorInfo tensor_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
  bool dtype_seen_ = false;
  bool shape_seen_ = false;
  bool metadata_seen_ = false;
  SafetensorsContent content_;
};

void check_names_differ(const std::vector<TensorInfo>& tensors, std::string_view label) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) fail(ErrorCode::format, "{}: tensor \"{}\" occurs twice", label, printable(*repeated));
}

/// The data must be the tensors one after the other and nothing else.
void check_no_gaps(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes, std::string_view label) {
  std::uint64_t expected = 0;
  for (const TensorInfo& tensor : tensors) {
    const TensorExtent& extent = tensor.extents.front();
    if (extent.offset != expected)
      fail(ErrorCode::format, "{}: tensor \"{}\" begins at data offset {}, but the tensors before it end at {}", label,
           printable(tensor.name), extent.offset, expected);
    expected += extent.size;
    if (expected > data_bytes)
      fail(ErrorCode::format,
           "{}: tensor \"{}\" needs data bytes {} to {}, but the file holds {} of them; it is truncated or damaged",
           label, printable(tensor.name), extent.offset, expected, data_bytes);
  }
  if (expected != data_bytes)
    fail(ErrorCode::format, "{}: the tensors end at data byte {}, but the file holds {} of them", label, expected,
         data_bytes);
}

std::string_view header_text(std::span<const std::byte> file, std::string_view label) {
  if (file.size() < kLengthBytes)
    fail(ErrorCode::format, "{}: {} bytes are too few for a safetensors file; it is truncated", label, file.size());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  if (length > limits::safetensors_header)
    if (const auto other = recognise_other_file(file))
      fail(ErrorCode::format, "{}: not a safetensors file: {}", label, *other);
  if (length > limits::safetensors_header)
    fail(ErrorCode::format,
         "{}: the header length is {} bytes, more than the format's limit of {}; this is no safetensors file, or it is "
         "damaged",
         label, length, limits::safetensors_header);
  if (length > file.size() - kLengthBytes)
    fail(ErrorCode::format, "{}: the header needs {} bytes, but the file holds {}; it is truncated or damaged", label,
         length, file.size() - kLengthBytes);
  const std::string_view text(reinterpret_cast<const char*>(file.data() + kLengthBytes), length);
  if (!text.starts_with('{'))
    fail(ErrorCode::format, "{}: the header does not begin with '{{'; this is no safetensors file, or it is damaged",
         label);
  return text;
}

}  // namespace

SafetensorsContent parse_safetensors(std::span<const std::byte> file, std::string_view label) {
  const std::string_view header = header_text(file, label);
  HeaderReader reader(label);
  nlohmann::json::sax_parse(header.begin(), header.end(), &reader);
  SafetensorsContent content = reader.take();
  std::stable_sort(content.tensors.begin(), content.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    const TensorExtent& x = a.extents.front();
    const TensorExtent& y = b.extents.front();
    return x.offset != y.offset ? x.offset < y.offset : x.size < y.size;
  });
  check_names_differ(content.tensors, label);
  const std::uint64_t data_offset = kLengthBytes + header.size();
  check_no_gaps(content.tensors, file.size() - data_offset, label);
  for (TensorInfo& tensor : content.tensors) tensor.extents.front().offset += data_offset;
  return content;
}

}  // namespace candor
