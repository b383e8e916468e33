// Code points: stepping through UTF-8 and the character classes and case mappings of Python's str. Strings here are
// well-formed UTF-8 (checked where they enter). Not a goal: normalisation, which the tokenizers do themselves.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace candor::jinja {

/// The code point at byte `at` of well-formed `text`; moves `at` behind it.
[[nodiscard]] char32_t next_code_point(std::string_view text, std::size_t& at);

void append_utf8(std::string& out, char32_t code_point);

/// The escape that Python writes for a code point: \xNN, \uNNNN or \UNNNNNNNN.
[[nodiscard]] std::string escaped_code_point(char32_t code_point);

/// Code points in well-formed `text`.
[[nodiscard]] std::size_t count_code_points(std::string_view text);

/// Bytes of the first `count` code points (all of them if there are fewer).
[[nodiscard]] std::size_t byte_offset(std::string_view text, std::size_t count);

// The classes of str.isspace, isalpha, isdecimal, isdigit, isnumeric, isprintable, and \w.
[[nodiscard]] bool is_space(char32_t c);
[[nodiscard]] bool is_alpha(char32_t c);
[[nodiscard]] bool is_decimal(char32_t c);
[[nodiscard]] bool is_digit(char32_t c);
[[nodiscard]] bool is_numeric(char32_t c);
[[nodiscard]] bool is_printable(char32_t c);
[[nodiscard]] bool is_lower(char32_t c);
[[nodiscard]] bool is_upper(char32_t c);
[[nodiscard]] bool is_title(char32_t c);
[[nodiscard]] bool is_word(char32_t c);
/// May stand in, or start, an identifier (PEP 3131).
[[nodiscard]] bool is_identifier_start(char32_t c);
[[nodiscard]] bool is_identifier_part(char32_t c);

/// str.upper(), lower(), title(), capitalize(), swapcase(), casefold(): full case mappings, final sigma included.
[[nodiscard]] std::string upper(std::string_view text);
[[nodiscard]] std::string lower(std::string_view text);
[[nodiscard]] std::string title(std::string_view text);
[[nodiscard]] std::string capitalize(std::string_view text);
[[nodiscard]] std::string swapcase(std::string_view text);
[[nodiscard]] std::string casefold(std::string_view text);

/// `text` without white space at its start or end.
[[nodiscard]] std::string_view trim_left(std::string_view text);
[[nodiscard]] std::string_view trim_right(std::string_view text);

}  // namespace candor::jinja
