// Typed access to the fields of tokenizer.json: every missing field, wrong type or unknown choice is an Error(format)
// that names its path in the file.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace candor::text {

/// A JSON value and where it stands ("tokenizer.json: pre_tokenizer.pretokenizers[1]").
class JsonField {
 public:
  JsonField(const nlohmann::json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const nlohmann::json& value() const { return *value_; }

  [[nodiscard]] bool is_null() const { return value_->is_null(); }
  /// The member `name`, or nothing if it is absent or null. The value itself must be an object.
  [[nodiscard]] std::optional<JsonField> find(const char* name) const;
  [[nodiscard]] JsonField at(const char* name) const;
  /// The elements of an array.
  [[nodiscard]] std::vector<JsonField> elements() const;

  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::uint64_t integer() const;
  [[nodiscard]] double number() const;
  /// A string of one code point.
  [[nodiscard]] char32_t character() const;

  [[nodiscard]] bool boolean_or(const char* name, bool fallback) const;
  /// A string member; empty if it is absent or null.
  [[nodiscard]] std::string string_or_empty(const char* name) const;

 private:
  void require(bool condition, std::string_view expected) const;

  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace candor::text
