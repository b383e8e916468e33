// Unicode for tokenizers: code points of UTF-8 text, character classes, normalization forms and case. One source of
// character data (utf8proc) for everything that is not a regular expression. Text here is well-formed UTF-8: encode()
// checks its input once, so these functions need not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace candor::text::unicode {

struct CodePoint {
  char32_t value;
  std::uint32_t length;  ///< bytes
};

/// The first code point of `text`, which is well-formed and not empty.
[[nodiscard]] inline CodePoint first(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

/// Bytes of the code point that starts with `lead`.
[[nodiscard]] inline std::uint32_t sequence_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/// The last code point of `text`, which is well-formed and not empty.
[[nodiscard]] CodePoint last(std::string_view text);

void append(std::string& out, char32_t code_point);

/// The number of code points of `text`.
[[nodiscard]] std::size_t length(std::string_view text);

/// Property White_Space.
[[nodiscard]] bool is_white_space(char32_t c);
/// General category Nd, Nl or No.
[[nodiscard]] bool is_number(char32_t c);
/// General category P*, and the ASCII symbols that Rust and BERT count as punctuation ($+<=>^`|~).
[[nodiscard]] bool is_punctuation(char32_t c);
/// General category M*.
[[nodiscard]] bool is_mark(char32_t c);
/// General category Mn.
[[nodiscard]] bool is_nonspacing_mark(char32_t c);
/// General category Cc, Cf, Cs or Co.
[[nodiscard]] bool is_other(char32_t c);

/// Appends the full lower-case mapping of `c` without context (U+0130 becomes two code points).
void append_lower_case(std::string& out, char32_t c);

enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };

/// `text` in a normalization form (UAX 15).
[[nodiscard]] std::string normalize(std::string_view text, Form form);

/// Bytes of the first extended grapheme cluster (UAX 29) of `text`, which is well-formed and not empty.
[[nodiscard]] std::size_t first_grapheme_length(std::string_view text);

/// Replaces every ill-formed part by U+FFFD, one for each maximal subpart (Unicode 15, section 3.9).
[[nodiscard]] std::string to_valid_utf8(std::string_view text);

/// Bytes at the end of `text` that may be the beginning of a character: 0 to 3.
[[nodiscard]] std::size_t incomplete_suffix(std::string_view text);

}  // namespace candor::text::unicode
