#include "text/jinja/text_search.h"

#include <cstdint>
#include <vector>

namespace candor::jinja {
namespace {

/// For each prefix of the needle, the length of its longest border (Knuth, Morris, Pratt 1977). `at(i)` is its i-th
/// byte.
template <typename At>
std::vector<std::uint32_t> borders(std::size_t size, const At& at) {
  std::vector<std::uint32_t> table(size, 0);
  for (std::size_t i = 1, k = 0; i < size; ++i) {
    while (k > 0 && at(i) != at(k)) k = table[k - 1];
    if (at(i) == at(k)) ++k;
    table[i] = static_cast<std::uint32_t>(k);
  }
  return table;
}

/// The number of bytes read when the first match ends, or npos.
template <typename TextAt, typename NeedleAt>
std::size_t search(std::size_t text_size, std::size_t needle_size, const TextAt& text, const NeedleAt& needle) {
  const auto table = borders(needle_size, needle);
  std::size_t matched = 0;
  for (std::size_t i = 0; i < text_size; ++i) {
    while (matched > 0 && text(i) != needle(matched)) matched = table[matched - 1];
    if (text(i) == needle(matched)) ++matched;
    if (matched == needle_size) return i + 1;
  }
  return std::string_view::npos;
}

constexpr std::size_t kShortNeedle = 16;  // up to here the library's search is fast enough in the worst case

}  // namespace

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (needle.size() <= kShortNeedle) return text.find(needle, from);
  if (from > text.size() || needle.size() > text.size() - from) return std::string_view::npos;
  const std::string_view rest = text.substr(from);
  const std::size_t end = search(
      rest.size(), needle.size(), [&](std::size_t i) { return rest[i]; }, [&](std::size_t i) { return needle[i]; });
  return end == std::string_view::npos ? end : from + end - needle.size();
}

std::size_t find_last_text(std::string_view text, std::string_view needle) {
  if (needle.size() <= kShortNeedle) return text.rfind(needle);
  if (needle.size() > text.size()) return std::string_view::npos;
  const std::size_t end = search(
      text.size(), needle.size(), [&](std::size_t i) { return text[text.size() - 1 - i]; },
      [&](std::size_t i) { return needle[needle.size() - 1 - i]; });
  return end == std::string_view::npos ? end : text.size() - end;
}

}  // namespace candor::jinja
