#include "formats/quant_map.h"

#include <algorithm>

#include "base/error.h"
#include "formats/quant/codec.h"

namespace candor {

QuantMap::QuantMap(const Json& patterns, std::string_view label) : label_(label) {
  if (!patterns.is_object())
    fail(ErrorCode::usage, "{}: must be an object from patterns of tensor names to encodings", label);
  for (const auto& [pattern, value] : patterns.items()) {
    const auto encoding = value.is_string() ? parse_encoding(value.get<std::string>()) : std::nullopt;
    if (!encoding || !can_quantize(*encoding))
      fail(ErrorCode::usage, "{}: \"{}\" is to be {}, which is no encoding that can be written, such as q6_k or f16",
           label, printable(pattern), printable(to_js_json(value)));
    patterns_.emplace_back(pattern, *encoding);
  }
}

std::optional<Encoding> QuantMap::find(std::string_view name) const {
  for (const auto& [pattern, encoding] : patterns_)
    if (fits_pattern(pattern, name)) return encoding;
  return std::nullopt;
}

void QuantMap::check_used(std::span<const std::string_view> names) const {
  for (const auto& entry : patterns_) {
    const std::string& pattern = entry.first;
    const bool used =
        std::any_of(names.begin(), names.end(), [&](std::string_view name) { return fits_pattern(pattern, name); });
    if (!used)
      fail(ErrorCode::usage, "{}: \"{}\" fits no tensor; candor inspect --tensors lists their names", label_,
           printable(pattern));
  }
}

bool fits_pattern(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last *, and where its text ends so far
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace candor
