// GGUF v2 and v3 (the format's description: ggml's docs/gguf.md). The reader maps the file and checks every count,
// length, type and extent before it allocates or touches; metadata is kept as views into the map and read through typed
// accessors that refuse the wrong type. Not a goal: writing metadata in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/tensor.h"

namespace candor {

enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12
};

/// One metadata value: its type, and its bytes in the file. For arrays the element type and count as well.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;
};

/// Key-value pairs. Every accessor returns nothing when the key is absent and throws Error(format), naming key,
/// expected and found type, when it has another type. The bytes belong to the map of the file that was parsed.
class GgufMetadata {
 public:
  [[nodiscard]] bool contains(std::string_view key) const;
  [[nodiscard]] std::optional<std::string_view> string(std::string_view key) const;
  /// Any integer type whose value is not negative.
  [[nodiscard]] std::optional<std::uint64_t> unsigned_integer(std::string_view key) const;
  /// f32, f64 or any integer type.
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  [[nodiscard]] std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
  /// Arrays of f32.
  [[nodiscard]] std::optional<std::vector<float>> floats(std::string_view key) const;
  /// Arrays of any integer type that fit 32 bits.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> integers(std::string_view key) const;
  /// Arrays of booleans.
  [[nodiscard]] std::optional<std::vector<bool>> booleans(std::string_view key) const;

  /// All pairs in file order; arrays longer than `max_array` print as {"type", "count"}.
  [[nodiscard]] Json to_json(std::uint64_t max_array = 64) const;
  [[nodiscard]] const std::vector<std::string>& keys() const { return order_; }
  [[nodiscard]] const GgufValue* find(std::string_view key) const;

  void insert(std::string key, GgufValue value);  ///< for the reader; throws Error(format) on a repeated key

 private:
  std::map<std::string, GgufValue, std::less<>> values_;
  std::vector<std::string> order_;
};

struct GgufContent {
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;    ///< start of the tensor data in the file
  std::vector<TensorInfo> tensors;  ///< extents with file = 0 and absolute offsets, checked against the file's size
};

/// Parses a mapped GGUF file. `label` (the path) starts every message. Throws Error(format) or Error(unsupported).
[[nodiscard]] GgufContent parse_gguf(std::span<const std::byte> file, std::string_view label);

}  // namespace candor
