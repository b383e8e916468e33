#include "formats/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "formats/file_kind.h"
#include "formats/gguf_types.h"

namespace candor {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint64_t kMinimumPairBytes = 13;    // key length, type, one byte of value
constexpr std::uint64_t kMinimumTensorBytes = 24;  // name length, rank, type, offset

/// Nothing for numbers that were withdrawn or are not known.
std::optional<Encoding> ggml_encoding(std::uint32_t number) {
  const auto found =
      std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(), [&](const GgmlType& type) { return type.number == number; });
  if (found == kGgmlTypes.end()) return std::nullopt;
  return found->encoding;
}

/// A cursor over the file: every read is checked, and a failure names what was being read and both sizes.
class Cursor {
 public:
  Cursor(std::span<const std::byte> file, std::string_view label) : file_(file), label_(label) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t remaining() const { return file_.size() - position_; }

  std::span<const std::byte> take(std::uint64_t size, std::string_view what) {
    if (size > remaining())
      fail(ErrorCode::format, "{}: {} needs {} bytes at offset {}, but the file ends at {}; it is truncated or damaged",
           label_, what, size, position_, file_.size());
    const auto view = file_.subspan(position_, size);
    position_ += size;
    return view;
  }

  template <typename T>
  T number(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

  std::string_view string(std::uint64_t limit, std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > limit)
      fail(ErrorCode::format, "{}: {} has a length of {} bytes, more than the limit of {}", label_, what, length,
           limit);
    const auto view = take(length, what);
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }

 private:
  std::span<const std::byte> file_;
  std::string_view label_;
  std::uint64_t position_ = 0;
};

/// Bytes of one value of a fixed-size type; 0 for strings, arrays and unknown types.
std::uint64_t fixed_size(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    default:
      return 0;
  }
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, std::string_view label) : cursor_(file, label), file_(file), label_(label) {}

  GgufContent parse() {
    read_header();
    for (std::uint64_t i = 0; i < pair_count_; ++i) read_pair();
    read_alignment();
    content_.tensors.reserve(tensor_count_);
    for (std::uint64_t i = 0; i < tensor_count_; ++i) content_.tensors.push_back(read_tensor());
    place_tensors();
    return std::move(content_);
  }

 private:
  void read_header() {
    if (const auto other = recognise_other_file(file_))
      fail(ErrorCode::format, "{}: not a GGUF file: {}", label_, *other);
    const auto magic = cursor_.take(kMagic.size(), "the magic number");
    if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0)
      fail(ErrorCode::format, "{}: not a GGUF file: it begins with \"{}\" instead of \"GGUF\"", label_,
           printable({reinterpret_cast<const char*>(magic.data()), magic.size()}));
    content_.version = cursor_.number<std::uint32_t>("the version");
    if (content_.version != 0 && (content_.version & 0xffffu) == 0)
      fail(ErrorCode::unsupported, "{}: the file is big-endian; convert it to little-endian GGUF", label_);
    if (content_.version != 2 && content_.version != 3)
      fail(ErrorCode::unsupported, "{}: GGUF version {}; versions 2 and 3 are read; convert the model again", label_,
           content_.version);
    tensor_count_ = cursor_.number<std::uint64_t>("the tensor count");
    pair_count_ = cursor_.number<std::uint64_t>("the metadata count");
    check_count("tensor count", tensor_count_, limits::tensors, kMinimumTensorBytes);
    check_count("metadata count", pair_count_, limits::metadata_keys, kMinimumPairBytes);
  }

  void check_count(std::string_view what, std::uint64_t count, std::uint64_t limit, std::uint64_t least_bytes) const {
    if (count > limit)
      fail(ErrorCode::format, "{}: the {} is {}, more than the limit of {}", label_, what, count, limit);
    if (count > cursor_.remaining() / least_bytes)
      fail(ErrorCode::format, "{}: the {} is {}, which cannot fit in a file of {} bytes", label_, what, count,
           file_.size());
  }

  std::string read_name(std::string_view what) {
    const std::string_view name = cursor_.string(limits::name_bytes, what);
    if (name.empty()) fail(ErrorCode::format, "{}: {} is empty", label_, what);
    if (name.find('\0') != std::string_view::npos || !is_utf8(name))
      fail(ErrorCode::format, "{}: {} \"{}\" holds a NUL or is not UTF-8", label_, what, printable(name));
    return std::string(name);
  }

  GgufType read_type(std::string_view what) {
    const auto type = cursor_.number<std::uint32_t>(what);
    if (type > static_cast<std::uint32_t>(GgufType::f64))
      fail(ErrorCode::format, "{}: {} has the unknown value type {}", label_, what, type);
    return static_cast<GgufType>(type);
  }

  void read_pair() {
    std::string key = read_name("metadata key");
    const std::string what = fmt::format("metadata \"{}\"", printable(key));
    GgufValue value;
    value.type = read_type(what);
    value.count = 1;
    if (value.type == GgufType::array) {
      value.element = read_type(what);
      value.count = cursor_.number<std::uint64_t>(what);
      if (value.element == GgufType::array)
        fail(ErrorCode::unsupported, "{}: {} is an array of arrays, which no known model uses", label_, what);
    }
    const GgufType item = value.type == GgufType::array ? value.element : value.type;
    value.bytes = item == GgufType::string ? read_strings(value.count, what)
                                           : cursor_.take(checked_mul(value.count, fixed_size(item), what), what);
    if (content_.metadata.contains(key)) fail(ErrorCode::format, "{}: {} occurs twice", label_, what);
    content_.metadata.insert(std::move(key), value);
  }

  /// Walks `count` strings, so that accessors may trust their lengths; returns all their bytes with the length fields.
  std::span<const std::byte> read_strings(std::uint64_t count, const std::string& what) {
    if (count > cursor_.remaining() / sizeof(std::uint64_t))
      fail(ErrorCode::format, "{}: {} claims {} strings, more than the file can hold", label_, what, count);
    Cursor start = cursor_;
    for (std::uint64_t i = 0; i < count; ++i) (void)cursor_.string(limits::json_bytes, what);
    return start.take(cursor_.position() - start.position(), what);
  }

  void read_alignment() {
    const auto alignment = content_.metadata.unsigned_integer("general.alignment");
    if (!alignment) return;
    if (!std::has_single_bit(*alignment) || *alignment > (1ull << 31))
      fail(ErrorCode::format, "{}: general.alignment is {}; it must be a power of two of at most 2^31", label_,
           *alignment);
    content_.alignment = *alignment;
  }

  /// One entry of the tensor directory; the extent's offset is still relative to the data section.
  TensorInfo read_tensor() {
    TensorInfo tensor;
    tensor.name = read_name("tensor name");
    const std::string what = fmt::format("tensor \"{}\"", printable(tensor.name));
    const auto rank = cursor_.number<std::uint32_t>(what);
    if (rank > limits::tensor_rank)
      fail(ErrorCode::format, "{}: {} has {} dimensions, more than the limit of {}", label_, what, rank,
           limits::tensor_rank);
    tensor.shape.resize(rank);
    for (std::uint32_t i = 0; i < rank; ++i) tensor.shape[rank - 1 - i] = cursor_.number<std::uint64_t>(what);
    tensor.encoding = read_encoding(what);
    const auto offset = cursor_.number<std::uint64_t>(what);
    if (offset % content_.alignment != 0)
      fail(ErrorCode::format, "{}: {} begins at data offset {}, not a multiple of the alignment {}", label_, what,
           offset, content_.alignment);
    tensor.bytes = stored_bytes(tensor.encoding, tensor.shape, fmt::format("{}: {}", label_, what));
    if (tensor.bytes == 0) fail(ErrorCode::format, "{}: {} has a dimension of 0", label_, what);
    tensor.extents = {{0, offset, tensor.bytes}};
    return tensor;
  }

  Encoding read_encoding(std::string_view what) {
    const auto type = cursor_.number<std::uint32_t>(what);
    const auto encoding = ggml_encoding(type);
    if (!encoding)
      fail(ErrorCode::unsupported,
           "{}: {} has ggml type {}, which is withdrawn or not known here; convert the model to a common type such as "
           "Q4_K, Q8_0 or F16",
           label_, what, type);
    return *encoding;
  }

  /// Makes offsets absolute, and refuses tensors that leave the file or share bytes.
  void place_tensors() {
    content_.data_offset = checked_align(cursor_.position(), content_.alignment, label_);
    for (TensorInfo& tensor : content_.tensors) {
      TensorExtent& extent = tensor.extents.front();
      extent.offset = checked_add(extent.offset, content_.data_offset, tensor.name);
      const std::uint64_t end = checked_add(extent.offset, extent.size, tensor.name);
      if (end > file_.size())
        fail(ErrorCode::format,
             "{}: tensor \"{}\" needs bytes {} to {}, but the file has {}; it is truncated or damaged", label_,
             printable(tensor.name), extent.offset, end, file_.size());
    }
    check_no_overlap(content_.tensors, label_);
  }

  Cursor cursor_;
  std::span<const std::byte> file_;
  std::string_view label_;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t pair_count_ = 0;
  GgufContent content_;
};

}  // namespace

GgufContent parse_gguf(std::span<const std::byte> file, std::string_view label) {
  return Parser(file, label).parse();
}

}  // namespace candor
