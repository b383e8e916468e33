#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace candor::text::byte_level {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::uint32_t kCharacters = 0x100 + 68;

struct Alphabet {
  std::array<char16_t, 256> characters{};
  std::array<std::int16_t, kCharacters> bytes{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.bytes.fill(-1);
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char16_t character = stands_for_itself(byte) ? static_cast<char16_t>(byte) : next++;
    alphabet.characters[byte] = character;
    alphabet.bytes[character] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

char32_t character(unsigned char byte) {
  return kAlphabet.characters[byte];
}

std::optional<unsigned char> byte(char32_t character) {
  if (character >= kCharacters || kAlphabet.bytes[character] < 0) return std::nullopt;
  return static_cast<unsigned char>(kAlphabet.bytes[character]);
}

std::string spell(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) unicode::append(out, character(static_cast<unsigned char>(c)));
  return out;
}

std::optional<std::string> read(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [value, length] = unicode::first(text);
    const auto read_byte = byte(value);
    if (!read_byte) return std::nullopt;
    out += static_cast<char>(*read_byte);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace candor::text::byte_level
