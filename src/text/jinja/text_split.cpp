#include "text/jinja/text_split.h"

#include <set>

#include "text/jinja/text_search.h"
#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

bool is_line_break(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool may_cut(std::int64_t limit, std::size_t cuts) {
  return limit < 0 || cuts < static_cast<std::uint64_t>(limit);
}

std::set<char32_t> code_points(std::string_view text) {
  std::set<char32_t> result;
  for (std::size_t at = 0; at < text.size();) result.insert(next_code_point(text, at));
  return result;
}

/// Where the code point that ends at byte `end` starts.
std::size_t previous_start(std::string_view text, std::size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return end;
}

}  // namespace

void split_space(std::string_view text, std::int64_t limit, const TakePiece& take) {
  std::size_t cuts = 0;
  for (text = trim_left(text); !text.empty(); ++cuts) {
    if (!may_cut(limit, cuts)) return take(text);
    std::size_t end = 0;
    for (std::size_t next = 0; end < text.size(); end = next)
      if (is_space(next_code_point(text, next))) break;
    take(text.substr(0, end));
    text = trim_left(text.substr(end));
  }
}

void split_space_from_right(std::string_view text, std::int64_t limit, const TakePiece& take) {
  std::size_t cuts = 0;
  for (text = trim_right(text); !text.empty(); ++cuts) {
    if (!may_cut(limit, cuts)) return take(text);
    std::size_t start = text.size();
    while (start > 0) {
      const std::size_t before = previous_start(text, start);
      std::size_t at = before;
      if (is_space(next_code_point(text, at))) break;
      start = before;
    }
    take(text.substr(start));
    text = trim_right(text.substr(0, start));
  }
}

void split_at(std::string_view text, std::string_view separator, std::int64_t limit, const TakePiece& take) {
  std::size_t start = 0;
  for (std::size_t cuts = 0; may_cut(limit, cuts); ++cuts) {
    const std::size_t found = find_text(text, separator, start);
    if (found == std::string_view::npos) break;
    take(text.substr(start, found - start));
    start = found + separator.size();
  }
  take(text.substr(start));
}

void split_at_from_right(std::string_view text, std::string_view separator, std::int64_t limit, const TakePiece& take) {
  for (std::size_t cuts = 0; may_cut(limit, cuts); ++cuts) {
    const std::size_t found = find_last_text(text, separator);
    if (found == std::string_view::npos) break;
    take(text.substr(found + separator.size()));
    text = text.substr(0, found);
  }
  take(text);
}

void split_lines(std::string_view text, bool keep_ends, const TakePiece& take) {
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t c = next_code_point(text, at);
    if (!is_line_break(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    take(text.substr(start, (keep_ends ? at : end) - start));
    start = at;
  }
  if (start < text.size()) take(text.substr(start));
}

std::string_view strip_left(std::string_view text, std::string_view set) {
  const std::set<char32_t> members = code_points(set);
  std::size_t start = 0;
  for (std::size_t next = 0; start < text.size(); start = next)
    if (!members.contains(next_code_point(text, next))) break;
  return text.substr(start);
}

std::string_view strip_right(std::string_view text, std::string_view set) {
  const std::set<char32_t> members = code_points(set);
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t start = previous_start(text, end);
    std::size_t at = start;
    if (!members.contains(next_code_point(text, at))) break;
    end = start;
  }
  return text.substr(0, end);
}

}  // namespace candor::jinja
