// The typed accessors of GgufMetadata. Values lie unaligned in the file and are copied out byte by byte.
#include <array>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf.h"

namespace candor {
namespace {

std::string_view type_name(GgufType type) {
  switch (type) {
    case GgufType::u8:
      return "u8";
    case GgufType::i8:
      return "i8";
    case GgufType::u16:
      return "u16";
    case GgufType::i16:
      return "i16";
    case GgufType::u32:
      return "u32";
    case GgufType::i32:
      return "i32";
    case GgufType::f32:
      return "f32";
    case GgufType::boolean:
      return "bool";
    case GgufType::string:
      return "string";
    case GgufType::array:
      return "array";
    case GgufType::u64:
      return "u64";
    case GgufType::i64:
      return "i64";
    case GgufType::f64:
      return "f64";
  }
  return "unknown";
}

std::string describe(const GgufValue& value) {
  if (value.type != GgufType::array) return std::string(type_name(value.type));
  return fmt::format("array of {} {}", value.count, type_name(value.element));
}

[[noreturn]] void wrong_type(std::string_view key, std::string_view expected, const GgufValue& value) {
  fail(ErrorCode::format, "metadata \"{}\": expected {}, found {}", printable(key), expected, describe(value));
}

template <typename T>
T load(std::span<const std::byte> bytes, std::uint64_t index = 0) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// Calls visit(x) with the integer at `index`, in its own type; false if `type` is no integer type.
template <typename Visit>
bool visit_integer(GgufType type, std::span<const std::byte> bytes, std::uint64_t index, const Visit& visit) {
  switch (type) {
    case GgufType::u8:
      visit(load<std::uint8_t>(bytes, index));
      return true;
    case GgufType::i8:
      visit(load<std::int8_t>(bytes, index));
      return true;
    case GgufType::u16:
      visit(load<std::uint16_t>(bytes, index));
      return true;
    case GgufType::i16:
      visit(load<std::int16_t>(bytes, index));
      return true;
    case GgufType::u32:
      visit(load<std::uint32_t>(bytes, index));
      return true;
    case GgufType::i32:
      visit(load<std::int32_t>(bytes, index));
      return true;
    case GgufType::u64:
      visit(load<std::uint64_t>(bytes, index));
      return true;
    case GgufType::i64:
      visit(load<std::int64_t>(bytes, index));
      return true;
    default:
      return false;
  }
}

bool is_integer(GgufType type) {
  constexpr std::array<std::byte, 8> zeros{};
  return visit_integer(type, zeros, 0, [](auto) {});
}

std::string_view take_string(std::span<const std::byte>& bytes) {
  const auto length = load<std::uint64_t>(bytes);  // the reader has checked it
  const auto text = bytes.subspan(sizeof length, length);
  bytes = bytes.subspan(sizeof length + length);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

/// `text` with U+FFFD for every byte that is not part of well-formed UTF-8, so that it may stand in JSON.
std::string valid_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    out += length == 0 ? "\xef\xbf\xbd" : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

Json scalar_json(GgufType type, std::span<const std::byte> bytes, std::uint64_t index) {
  Json out;
  if (visit_integer(type, bytes, index, [&](auto value) { out = value; })) return out;
  if (type == GgufType::f32) return load<float>(bytes, index);
  if (type == GgufType::f64) return load<double>(bytes, index);
  return load<std::uint8_t>(bytes, index) != 0;
}

Json array_json(const GgufValue& value) {
  Json out = Json::array();
  auto rest = value.bytes;
  for (std::uint64_t i = 0; i < value.count; ++i)
    out.push_back(value.element == GgufType::string ? Json(valid_utf8(take_string(rest)))
                                                    : scalar_json(value.element, value.bytes, i));
  return out;
}

Json value_json(const GgufValue& value, std::uint64_t max_array) {
  if (value.type == GgufType::array) {
    if (value.count > max_array) return {{"type", type_name(value.element)}, {"count", value.count}};
    return array_json(value);
  }
  if (value.type != GgufType::string) return scalar_json(value.type, value.bytes, 0);
  auto bytes = value.bytes;
  return valid_utf8(take_string(bytes));
}

}  // namespace

void GgufMetadata::insert(std::string key, GgufValue value) {
  const auto [place, inserted] = values_.emplace(key, value);
  if (!inserted) fail(ErrorCode::format, "metadata \"{}\" occurs twice", printable(key));
  order_.push_back(std::move(key));
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

bool GgufMetadata::contains(std::string_view key) const {
  return find(key) != nullptr;
}

std::optional<std::string_view> GgufMetadata::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type != GgufType::string) wrong_type(key, "a string", *value);
  auto bytes = value->bytes;
  return take_string(bytes);
}

std::optional<std::uint64_t> GgufMetadata::unsigned_integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  std::uint64_t out = 0;
  const bool integer = visit_integer(value->type, value->bytes, 0, [&](auto found) {
    if constexpr (std::is_signed_v<decltype(found)>)
      if (found < 0) fail(ErrorCode::format, "metadata \"{}\" is {}; it must not be negative", printable(key), found);
    out = static_cast<std::uint64_t>(found);
  });
  if (!integer) wrong_type(key, "an integer", *value);
  return out;
}

std::optional<double> GgufMetadata::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type == GgufType::f32) return static_cast<double>(load<float>(value->bytes));
  if (value->type == GgufType::f64) return load<double>(value->bytes);
  double out = 0;
  if (!visit_integer(value->type, value->bytes, 0, [&](auto found) { out = static_cast<double>(found); }))
    wrong_type(key, "a number", *value);
  return out;
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type != GgufType::boolean) wrong_type(key, "a bool", *value);
  return load<std::uint8_t>(value->bytes) != 0;
}

std::optional<std::vector<std::string_view>> GgufMetadata::strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type != GgufType::array || value->element != GgufType::string)
    wrong_type(key, "an array of strings", *value);
  std::vector<std::string_view> out;
  out.reserve(value->count);
  auto rest = value->bytes;
  for (std::uint64_t i = 0; i < value->count; ++i) out.push_back(take_string(rest));
  return out;
}

std::optional<std::vector<float>> GgufMetadata::floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type != GgufType::array || value->element != GgufType::f32) wrong_type(key, "an array of f32", *value);
  std::vector<float> out(value->count);
  if (!out.empty()) std::memcpy(out.data(), value->bytes.data(), value->bytes.size());
  return out;
}

std::optional<std::vector<std::int32_t>> GgufMetadata::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type != GgufType::array || !is_integer(value->element)) wrong_type(key, "an array of integers", *value);
  std::vector<std::int32_t> out;
  out.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    visit_integer(value->element, value->bytes, i, [&](auto found) {
      if (!std::in_range<std::int32_t>(found))
        fail(ErrorCode::format, "metadata \"{}\"[{}] is {}, which does not fit 32 bits", printable(key), i, found);
      out.push_back(static_cast<std::int32_t>(found));
    });
  }
  return out;
}

std::optional<std::vector<bool>> GgufMetadata::booleans(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::nullopt;
  if (value->type != GgufType::array || value->element != GgufType::boolean)
    wrong_type(key, "an array of bool", *value);
  std::vector<bool> out(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) out[i] = load<std::uint8_t>(value->bytes, i) != 0;
  return out;
}

Json GgufMetadata::to_json(std::uint64_t max_array) const {
  Json out = Json::object();
  // Keys are unique, so they are appended without the object's linear look-up.
  auto& members = static_cast<std::vector<Json::object_t::value_type>&>(out.get_ref<Json::object_t&>());
  for (const std::string& key : order_) members.emplace_back(key, value_json(values_.find(key)->second, max_array));
  return out;
}

}  // namespace candor
