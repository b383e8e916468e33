#include "text/jinja/text_class.h"

#include "text/jinja/unicode.h"

namespace candor::jinja {

bool is_lower_text(std::string_view text) {
  bool cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_upper(c) || is_title(c)) return false;
    cased = cased || is_lower(c);
  }
  return cased;
}

bool is_upper_text(std::string_view text) {
  bool cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (is_lower(c) || is_title(c)) return false;
    cased = cased || is_upper(c);
  }
  return cased;
}

bool is_title_text(std::string_view text) {
  bool cased = false;
  bool after_cased = false;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const bool capital = is_upper(c) || is_title(c);
    if (capital ? after_cased : is_lower(c) && !after_cased) return false;
    after_cased = capital || is_lower(c);
    cased = cased || after_cased;
  }
  return cased;
}

bool all_of(std::string_view text, bool (*belongs)(char32_t)) {
  for (std::size_t at = 0; at < text.size();)
    if (!belongs(next_code_point(text, at))) return false;
  return !text.empty();
}

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = 0;
  if (!is_identifier_start(next_code_point(text, at))) return false;
  return at == text.size() || all_of(text.substr(at), is_identifier_part);
}

}  // namespace candor::jinja
