#include "text/base64.h"

#include <cstdint>

#include "base/error.h"

namespace candor::text {
namespace {

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string decode_base64(std::string_view text, std::string_view label) {
  if (text.size() % 4 != 0)
    fail(ErrorCode::format, "{}: base64 text of {} characters is not whole groups of 4", label, text.size());
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int value = digit(c);
    if (value < 0) fail(ErrorCode::format, "{}: \"{}\" is not a base64 digit", label, printable({&c, 1}));
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(static_cast<unsigned char>(bits >> count));
  }
  return out;
}

}  // namespace candor::text
