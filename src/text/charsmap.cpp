#include "text/charsmap.h"

#include <cstring>

#include "base/error.h"
#include "text/unicode.h"

namespace candor::text {
namespace {

// A unit holds a label or, for a leaf, a value; and the distance to its children, in units or in blocks of 256.
bool has_leaf(std::uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
std::uint32_t value(std::uint32_t unit) {
  return unit & 0x7fff'ffff;
}
std::uint32_t label_of(std::uint32_t unit) {
  return unit & 0x8000'00ff;
}
std::uint32_t offset(std::uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200) >> 6);
}

}  // namespace

Charsmap::Charsmap(std::string_view blob, std::string_view label) {
  if (blob.empty()) return;
  std::uint32_t bytes = 0;
  if (blob.size() < sizeof bytes)
    fail(ErrorCode::format, "{}: precompiled_charsmap has {} bytes, fewer than its header", label, blob.size());
  std::memcpy(&bytes, blob.data(), sizeof bytes);
  blob.remove_prefix(sizeof bytes);
  if (bytes > blob.size() || bytes % 4 != 0 || bytes == 0)
    fail(ErrorCode::format, "{}: precompiled_charsmap claims an array of {} bytes in {}", label, bytes, blob.size());
  units_.resize(bytes / 4);
  std::memcpy(units_.data(), blob.data(), bytes);
  strings_ = blob.substr(bytes);
}

template <typename Visit>
void Charsmap::for_each_prefix(std::string_view text, const Visit& visit) const {
  if (units_.empty()) return;
  std::uint32_t at = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) return;
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) return;
    const std::uint32_t unit = units_[at];
    at ^= offset(unit);
    if (at >= units_.size()) return;
    if (has_leaf(unit) && !visit(i + 1, value(units_[at]))) return;
  }
}

std::string_view Charsmap::string_at(std::uint32_t start) const {
  const std::string_view rest = std::string_view(strings_).substr(std::min<std::size_t>(start, strings_.size()));
  return rest.substr(0, rest.find('\0'));
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  std::optional<Match> match;
  for_each_prefix(text, [&](std::size_t length, std::uint32_t start) {
    match = Match{length, string_at(start)};
    return true;
  });
  return match;
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text) const {
  std::optional<Match> match;
  for_each_prefix(text, [&](std::size_t length, std::uint32_t start) {
    match = Match{length, string_at(start)};
    return false;
  });
  return match;
}

std::string Charsmap::apply_by_grapheme(std::string_view text, bool& at_start) const {
  constexpr std::size_t kWholeBelow = 6;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::string_view grapheme = text.substr(0, unicode::first_grapheme_length(text));
    text.remove_prefix(grapheme.size());
    const auto whole = grapheme.size() < kWholeBelow ? shortest(grapheme) : std::nullopt;
    if (whole) {
      out += whole->replacement;
      grapheme = {};
    }
    while (!grapheme.empty()) {
      const std::string_view character = grapheme.substr(0, unicode::sequence_length(grapheme[0]));
      const auto match = shortest(character);
      out += match ? match->replacement : character;
      grapheme.remove_prefix(character.size());
    }
    if (out.empty()) at_start = false;
  }
  return out;
}

}  // namespace candor::text
