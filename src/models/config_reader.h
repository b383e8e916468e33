// Reads a model's configuration so that nothing in it is overlooked: every key is used, known to be harmless, or
// refused. A key that changes the mathematics must not be ignored because an engine never heard of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"

namespace candor::models {

class ConfigReader {
 public:
  /// `config` must be an object and outlive the reader; `label` names the file in errors.
  ConfigReader(const Json& config, std::string label);

  /// Each accessor marks the key as used. A null counts as absent. Throws Error(format) for another type.
  [[nodiscard]] std::uint64_t positive(std::string_view key);
  [[nodiscard]] std::optional<std::uint64_t> optional_positive(std::string_view key);
  /// Numbers are finite and not negative: no configuration means a negative scale, base or epsilon.
  [[nodiscard]] double number(std::string_view key);
  [[nodiscard]] std::optional<double> optional_number(std::string_view key);
  [[nodiscard]] bool boolean(std::string_view key, bool otherwise);
  [[nodiscard]] std::string string(std::string_view key);
  [[nodiscard]] std::optional<std::string> optional_string(std::string_view key);
  /// The raw value, or nullptr when absent or null.
  [[nodiscard]] const Json* find(std::string_view key);

  /// Throws Error(format) unless each key is there, null included: where a missing key does not mean none.
  void must_state(std::initializer_list<std::string_view> keys) const;

  /// Marks keys that do not change what is computed.
  void harmless(std::initializer_list<std::string_view> keys);
  /// Refuses the value of `key` unless it is absent, null or `wanted`; `why` says what would be needed.
  void require(std::string_view key, const Json& wanted, std::string_view why);
  /// Throws Error(unsupported) listing every key that was neither used nor harmless. A null says nothing.
  void finish() const;

  [[nodiscard]] const std::string& label() const { return label_; }

 private:
  [[noreturn]] void wrong_type(std::string_view key, const Json& value, std::string_view wanted) const;

  const Json& config_;
  std::string label_;
  std::set<std::string, std::less<>> used_;
};

/// Keys of a Hugging Face config.json that never change a forward pass without dropout.
void mark_huggingface_harmless(ConfigReader& reader);

}  // namespace candor::models
