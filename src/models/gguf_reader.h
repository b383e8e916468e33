// GGUF metadata of one architecture, read so that nothing in it is overlooked: as with config.json (config_reader.h),
// every key under "<architecture>." is used, known to be harmless, or refused.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_source.h"

namespace candor::models {

class GgufReader {
 public:
  /// `source` must be a GGUF file and outlive the reader.
  GgufReader(const ModelSource& source, std::string architecture);

  /// Keys are given without the architecture. Each accessor marks the key as used. Throws Error(format) for another
  /// type.
  [[nodiscard]] std::uint64_t positive(std::string_view key);
  [[nodiscard]] std::optional<std::uint64_t> optional_positive(std::string_view key);
  /// Absent, or 0 where that means none.
  [[nodiscard]] std::uint64_t count(std::string_view key);
  [[nodiscard]] double number(std::string_view key);
  [[nodiscard]] std::optional<double> optional_number(std::string_view key);
  [[nodiscard]] std::optional<bool> optional_boolean(std::string_view key);
  [[nodiscard]] std::optional<std::string_view> optional_string(std::string_view key);
  /// One number for each of `layers` layers, from an array or from a single value.
  [[nodiscard]] std::vector<std::uint64_t> by_layer(std::string_view key, std::uint32_t layers);
  /// Whether the key holds a list.
  [[nodiscard]] bool is_array(std::string_view key) const;
  /// A list of one boolean for each of `layers` layers.
  [[nodiscard]] std::vector<bool> booleans(std::string_view key, std::uint32_t layers);
  [[nodiscard]] bool contains(std::string_view key) const { return metadata_.contains(full_name(key)); }

  /// Marks keys that do not change what is computed.
  void harmless(std::initializer_list<std::string_view> keys);
  /// Throws Error(unsupported) listing every key of the architecture that was neither used nor harmless.
  void finish() const;

  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] const ModelSource& source() const { return source_; }

 private:
  [[nodiscard]] std::string full_name(std::string_view key) const { return prefix_ + std::string(key); }
  const std::string& use(std::string_view key);

  const ModelSource& source_;
  const GgufMetadata& metadata_;
  std::string label_;
  std::string prefix_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace candor::models
