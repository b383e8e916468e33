// The byte alphabet of byte-level BPE (GPT-2): each byte has a printable code point, so that any text is a string of
// vocabulary characters. Printable Latin-1 bytes stand for themselves; the other 68 take U+0100 and up in byte order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace candor::text::byte_level {

/// The code point that stands for `byte`.
[[nodiscard]] char32_t character(unsigned char byte);

/// The byte a code point stands for, if it is in the alphabet.
[[nodiscard]] std::optional<unsigned char> byte(char32_t character);

/// Every byte of `bytes` as its character, in UTF-8.
[[nodiscard]] std::string spell(std::string_view bytes);

/// The bytes that UTF-8 `text` spells, or nothing if a character is outside the alphabet.
[[nodiscard]] std::optional<std::string> read(std::string_view text);

}  // namespace candor::text::byte_level
