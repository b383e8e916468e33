// GGUF version 3 headers: metadata in the order it is set, then the tensor directory. The data follow as the layout
// says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "formats/output_layout.h"

namespace candor {

/// Key-value pairs to write. Setting a key again replaces its value in place.
class GgufPairs {
 public:
  GgufPairs() = default;
  /// All pairs of a file that was read.
  explicit GgufPairs(const GgufMetadata& metadata);

  void set_boolean(std::string_view key, bool value);
  void set_u16(std::string_view key, std::uint16_t value);
  void set_u32(std::string_view key, std::uint32_t value);
  void set_i32(std::string_view key, std::int32_t value);
  void set_u64(std::string_view key, std::uint64_t value);
  void set_f32(std::string_view key, float value);
  void set_string(std::string_view key, std::string_view value);
  void set_strings(std::string_view key, std::span<const std::string> values);
  void set_f32s(std::string_view key, std::span<const float> values);
  void set_booleans(std::string_view key, const std::vector<bool>& values);
  void set_i32s(std::string_view key, std::span<const std::int32_t> values);
  void set(std::string_view key, const GgufValue& value);
  void remove(std::string_view key);

  /// The text under `key`; nothing if there is none, or a value of another type.
  [[nodiscard]] std::optional<std::string> string(std::string_view key) const;
  [[nodiscard]] std::uint64_t count() const { return pairs_.size(); }
  /// The pairs as they stand in a file.
  [[nodiscard]] std::string bytes() const;

 private:
  struct Pair {
    std::string key;
    GgufType type;
    std::string value;  ///< the bytes after the type
  };
  std::string& place(std::string_view key, GgufType type);

  std::vector<Pair> pairs_;
};

/// ggml's number for a tensor type. Throws Error(unsupported) for encodings that GGUF does not have.
[[nodiscard]] std::uint32_t ggml_type(Encoding encoding);

/// One GGUF file with these tensors (names, encodings, shapes; `bytes` and extents are filled in). Throws Error(format)
/// for a tensor that GGUF cannot hold: a rank above four, a dimension of 0, rows that are not whole blocks.
[[nodiscard]] OutputLayout layout_gguf(std::string file_name, GgufPairs pairs, std::vector<TensorInfo> tensors,
                                       std::uint32_t alignment = 32);

}  // namespace candor
