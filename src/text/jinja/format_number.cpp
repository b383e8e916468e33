#include "text/jinja/format_number.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace candor::jinja {

std::string digits_of(Int value, int base, bool upper_case) {
  const std::string_view symbols = upper_case ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    const auto digit = static_cast<int>(value % base);
    digits += symbols[static_cast<std::size_t>(digit < 0 ? -digit : digit)];
    value /= base;
  } while (value != 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string digits_of(Runtime& runtime, double value, char type, Int precision, bool alternate) {
  constexpr Int kMostDigits = 100'000;
  if (precision > kMostDigits)
    runtime.fail("a precision of more than {} digits", static_cast<std::int64_t>(kMostDigits));
  const bool upper_case = type == 'E' || type == 'F' || type == 'G';
  if (std::isnan(value)) return upper_case ? "NAN" : "nan";
  if (std::isinf(value)) return upper_case ? "INF" : "inf";
  const std::string format = std::string(alternate ? "%#.*" : "%.*") + type;
  const int digits = static_cast<int>(precision);
  const double magnitude = std::abs(value);
  runtime.walk(static_cast<std::uint64_t>(digits) + 400);
  std::string out(static_cast<std::size_t>(digits) + 400, '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size = std::snprintf(out.data(), out.size(), format.c_str(), digits, magnitude);
#pragma GCC diagnostic pop
  out.resize(static_cast<std::size_t>(size));
  return out;
}

}  // namespace candor::jinja
