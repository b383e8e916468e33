#include "text/jinja/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <span>

#include "text/jinja/unicode_tables.h"

namespace candor::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

bool contains(std::span<const CodePointRange> table, char32_t c) {
  const auto after = std::upper_bound(table.begin(), table.end(), c,
                                      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != table.begin() && c <= std::prev(after)->last;
}

/// Appends the full mapping of `c` if it has one in `table`.
bool append_full(std::string& out, std::span<const FullMapping> table, char32_t c) {
  const auto found = std::lower_bound(table.begin(), table.end(), c,
                                      [](const FullMapping& mapping, char32_t value) { return mapping.from < value; });
  if (found == table.end() || found->from != c) return false;
  for (const char32_t to : found->to)
    if (to != 0) append_utf8(out, to);
  return true;
}

void append_upper(std::string& out, char32_t c) {
  if (append_full(out, kFullUpper, c)) return;
  append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string& out, char32_t c) {
  if (append_full(out, kFullTitle, c)) return;
  append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

bool is_cased(char32_t c) {
  return is_lower(c) || is_upper(c) || is_title(c);
}

/// Unicode's Case_Ignorable (DerivedCoreProperties.txt): marks, format characters, modifiers, and mid-word punctuation.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  static constexpr char32_t kMidWord[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,  0x5f4,  0x2018, 0x2019,
                                          0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
  return std::find(std::begin(kMidWord), std::end(kMidWord), c) != std::end(kMidWord);
}

/// True if the capital sigma at bytes [at, after) of `text` ends a word (Unicode, Final_Sigma).
bool is_final_sigma(std::string_view text, std::size_t at, std::size_t after) {
  bool cased_before = false;
  for (std::size_t i = at; i > 0 && !cased_before;) {
    do --i;
    while ((static_cast<unsigned char>(text[i]) & 0xc0) == 0x80);
    std::size_t start = i;
    const char32_t c = next_code_point(text, start);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  while (after < text.size()) {
    const char32_t c = next_code_point(text, after);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

/// Appends the lower case of the code point at byte `at`, and moves `at` behind it.
void append_lower(std::string& out, std::string_view text, std::size_t& at) {
  const std::size_t start = at;
  const char32_t c = next_code_point(text, at);
  if (c == 0x3a3) {
    append_utf8(out, is_final_sigma(text, start, at) ? 0x3c2 : 0x3c3);
  } else if (c == 0x130) {
    append_utf8(out, 'i');
    append_utf8(out, 0x307);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  const char32_t first = byte(0);
  if (first < 0x80) {
    at += 1;
    return first;
  }
  if (first < 0xe0) {
    const char32_t c = ((first & 0x1f) << 6) | (byte(1) & 0x3f);
    at += 2;
    return c;
  }
  if (first < 0xf0) {
    const char32_t c = ((first & 0x0f) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f);
    at += 3;
    return c;
  }
  const char32_t c = ((first & 0x07) << 18) | ((byte(1) & 0x3f) << 12) | ((byte(2) & 0x3f) << 6) | (byte(3) & 0x3f);
  at += 4;
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6));
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3f));
    put(0x80 | ((c >> 6) & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

std::string escaped_code_point(char32_t c) {
  const auto code = static_cast<std::uint32_t>(c);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::size_t byte_offset(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (count-- > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return at;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_alpha(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  return is_decimal(c) || contains(kDigits, c);
}

bool is_numeric(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return contains(kNumericLetters, c);
  }
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || contains(kOtherLowercase, c);
}
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || contains(kOtherUppercase, c);
}
bool is_title(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}
bool is_word(char32_t c) {
  return c == '_' || is_alpha(c) || is_numeric(c);
}

bool is_identifier_start(char32_t c) {
  return c == '_' || is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c) || is_decimal(c) || c == 0xb7 || c == 0x387) return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

std::string upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      out += text[at] >= 'a' && text[at] <= 'z' ? static_cast<char>(text[at] - 'a' + 'A') : text[at];
      ++at;
    } else {
      append_upper(out, next_code_point(text, at));
    }
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      out += text[at] >= 'A' && text[at] <= 'Z' ? static_cast<char>(text[at] - 'A' + 'a') : text[at];
      ++at;
    } else {
      append_lower(out, text, at);
    }
  }
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  bool after_cased = false;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at;
    const char32_t c = next_code_point(text, next);
    if (after_cased) {
      append_lower(out, text, at);
    } else {
      append_title(out, c);
      at = next;
    }
    after_cased = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  if (!text.empty()) append_title(out, next_code_point(text, at));
  while (at < text.size()) append_lower(out, text, at);
  return out;
}

std::string swapcase(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t next = at;
    const char32_t c = next_code_point(text, next);
    if (is_upper(c)) {
      append_lower(out, text, at);
    } else {
      if (is_lower(c)) {
        append_upper(out, c);
      } else {
        append_utf8(out, c);
      }
      at = next;
    }
  }
  return out;
}

std::string casefold(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(c, folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
  }
  return out;
}

std::string_view trim_left(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t next = at;
    if (!is_space(next_code_point(text, next))) break;
    at = next;
  }
  return text.substr(at);
}

std::string_view trim_right(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t start = end;
    do --start;
    while ((static_cast<unsigned char>(text[start]) & 0xc0) == 0x80);
    std::size_t at = start;
    if (!is_space(next_code_point(text, at))) break;
    end = start;
  }
  return text.substr(0, end);
}

}  // namespace candor::jinja
