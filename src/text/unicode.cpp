#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/error.h"
#include "base/utf8.h"

namespace candor::text::unicode {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

utf8proc_option_t options(Form form) {
  switch (form) {
    case Form::nfc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    case Form::nfd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    case Form::nfkc:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case Form::nfkd:
      return static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  fail(ErrorCode::internal, "normalization form {} does not exist", static_cast<int>(form));
}

/// True if no code point of `text` has a decomposition or can follow one in a composition: below U+00C0 for the
/// decomposing forms, below U+0300 for NFC, ASCII for the compatibility forms.
bool is_trivially_normal(std::string_view text, Form form) {
  const unsigned char limit = form == Form::nfc ? 0xcc : form == Form::nfd ? 0xc3 : 0x80;
  return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) < limit; });
}

std::string map_with_utf8proc(std::string_view text, Form form) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = utf8proc_map(data, static_cast<utf8proc_ssize_t>(text.size()), &mapped, options(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  if (size < 0) fail(ErrorCode::text, "text cannot be normalized: {}", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size)};
}

/// The length of the longest prefix of `text` that a well-formed sequence may begin with, at least 1 (a "maximal
/// subpart" when `text` does not start with a well-formed sequence).
std::size_t maximal_subpart(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0xc2 || lead > 0xf4) return 1;
  const std::size_t wanted = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  std::size_t size = 1;
  if (size < text.size() && byte(size) >= low && byte(size) <= high) ++size;
  if (size == 1) return size;
  while (size < wanted && size < text.size() && (byte(size) & 0xc0) == 0x80) ++size;
  return size;
}

}  // namespace

CodePoint last(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  return first(text.substr(begin));
}

void append(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

std::size_t length(std::string_view text) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts));
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  const auto type = category(c);
  return c == 0x85 || type == UTF8PROC_CATEGORY_ZS || type == UTF8PROC_CATEGORY_ZL || type == UTF8PROC_CATEGORY_ZP;
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto type = category(c);
  return type >= UTF8PROC_CATEGORY_ND && type <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return (c > 0x20 && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7f);
  const auto type = category(c);
  return type >= UTF8PROC_CATEGORY_PC && type <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t c) {
  const auto type = category(c);
  return type >= UTF8PROC_CATEGORY_MN && type <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t c) {
  const auto type = category(c);
  return type >= UTF8PROC_CATEGORY_CC && type <= UTF8PROC_CATEGORY_CO;
}

void append_lower_case(std::string& out, char32_t c) {
  if (c == 0x130) {  // the only unconditional mapping to two code points (SpecialCasing.txt)
    out += "i\xcc\x87";
    return;
  }
  append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string normalize(std::string_view text, Form form) {
  if (is_trivially_normal(text, form)) return std::string(text);
  return map_with_utf8proc(text, form);
}

std::size_t first_grapheme_length(std::string_view text) {
  CodePoint previous = first(text);
  std::size_t size = previous.length;
  utf8proc_int32_t state = 0;
  while (size < text.size()) {
    const CodePoint next = first(text.substr(size));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state))
      break;
    size += next.length;
    previous = next;
  }
  return size;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t size = utf8_sequence_length(text);
    if (size == 0) {
      size = maximal_subpart(text);
      out += kReplacement;
    } else {
      out.append(text, 0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

std::size_t incomplete_suffix(std::string_view text) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(3, text.size()); ++size) {
    const std::string_view suffix = text.substr(text.size() - size);
    const auto lead = static_cast<unsigned char>(suffix[0]);
    if ((lead & 0xc0) == 0x80) continue;
    const bool whole = utf8_sequence_length(suffix) != 0 || lead < 0xc2 || lead > 0xf4;
    const std::size_t wanted = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return !whole && size < wanted && maximal_subpart(suffix) == size ? size : 0;
  }
  return 0;
}

}  // namespace candor::text::unicode
