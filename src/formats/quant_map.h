// Encodings for single tensors, over those of a mix: what a person writes to --quant-map. A JSON object from patterns
// of tensor names, in which * stands for any text, to encodings: {"*.attn_v.weight": "q6_k", "output.weight": "f16"}.
// The first pattern that fits decides.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "formats/encoding.h"

namespace candor {

class QuantMap {
 public:
  QuantMap() = default;
  /// Throws Error(usage), starting with `label`: no such object, an unknown encoding or one that cannot be written.
  QuantMap(const Json& patterns, std::string_view label);

  /// Nothing if no pattern fits.
  [[nodiscard]] std::optional<Encoding> find(std::string_view name) const;
  /// Throws Error(usage) naming a pattern that fits none of these.
  void check_used(std::span<const std::string_view> names) const;

 private:
  std::string label_;
  std::vector<std::pair<std::string, Encoding>> patterns_;
};

/// Whether `name` fits `pattern`, in which * stands for any text. Linear in the product of their lengths.
[[nodiscard]] bool fits_pattern(std::string_view pattern, std::string_view name);

}  // namespace candor
