#include "text/jinja/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "text/jinja/unicode.h"

namespace candor::jinja {
namespace {

__extension__ typedef unsigned __int128 UnsignedInt;

constexpr Int kMax = static_cast<Int>(~UnsignedInt{0} >> 1);
constexpr Int kMin = -kMax - 1;

UnsignedInt magnitude(Int value) {
  return value < 0 ? UnsignedInt{0} - static_cast<UnsignedInt>(value) : static_cast<UnsignedInt>(value);
}

/// The order of an integer and a float that is not a NaN.
std::partial_ordering compare_mixed(Int a, double b) {
  const auto whole = truncate(b);
  if (!whole) return b > 0 ? std::partial_ordering::less : std::partial_ordering::greater;
  if (a != *whole) return a < *whole ? std::partial_ordering::less : std::partial_ordering::greater;
  return 0.0 <=> b - std::trunc(b);
}

/// Removes underscores between digits. False if one stands elsewhere.
bool remove_underscores(std::string_view text, std::string& out) {
  const auto alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !alphanumeric(text[i - 1]) || !alphanumeric(text[i + 1])) {
      return false;
    }
  }
  return true;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

}  // namespace

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    const Int x = a.integral();
    const Int y = b.integral();
    return x < y   ? std::partial_ordering::less
           : x > y ? std::partial_ordering::greater
                   : std::partial_ordering::equivalent;
  }
  if (a.is<double>() && b.is<double>()) return std::get<double>(a.storage()) <=> std::get<double>(b.storage());
  if (a.is<double>()) return 0 <=> compare_numbers(b, a);
  const double y = std::get<double>(b.storage());
  if (std::isnan(y)) return std::partial_ordering::unordered;
  return compare_mixed(a.integral(), y);
}

double to_double(Int value) {
  return static_cast<double>(value);
}

double as_double(const Value& number) {
  return number.is<double>() ? std::get<double>(number.storage()) : to_double(number.integral());
}

std::string to_string(Int value) {
  UnsignedInt rest = magnitude(value);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (value < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string to_string(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed_end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, static_cast<std::size_t>(fixed_end - buffer));
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::optional<Int> truncate(double value) {
  if (!(std::abs(value) < 0x1p127)) return std::nullopt;
  return static_cast<Int>(value);
}

std::optional<Int> add(Int a, Int b) {
  if (b > 0 ? a > kMax - b : a < kMin - b) return std::nullopt;
  return a + b;
}

std::optional<Int> subtract(Int a, Int b) {
  if (b < 0 ? a > kMax + b : a < kMin + b) return std::nullopt;
  return a - b;
}

std::optional<Int> multiply(Int a, Int b) {
  if (a == 0 || b == 0) return 0;
  const UnsignedInt x = magnitude(a);
  const UnsignedInt y = magnitude(b);
  if (x > static_cast<UnsignedInt>(kMax) / y) return std::nullopt;
  const Int product = static_cast<Int>(x * y);
  return (a < 0) == (b < 0) ? product : -product;
}

std::optional<Int> power(Int base, Int exponent) {
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent > 127) return std::nullopt;
  Int result = 1;
  for (Int i = 0; i < exponent; ++i) {
    const auto product = multiply(result, base);
    if (!product) return std::nullopt;
    result = *product;
  }
  return result;
}

std::optional<Int> floor_divide(Int a, Int b) {
  if (b == -1) return subtract(0, a);
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int modulo(Int a, Int b) {
  if (b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

std::optional<Int> parse_integer(std::string_view text, int base, bool& too_large) {
  too_large = false;
  text = trim_right(trim_left(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int marked = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (marked != 0 && (base == 0 || base == marked)) {
      base = marked;
      text.remove_prefix(2);
      if (text.starts_with('_')) text.remove_prefix(1);
    }
  }
  std::string digits;
  if (!remove_underscores(text, digits) || digits.empty()) return std::nullopt;
  if (base == 0) {
    base = 10;
    if (digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) return std::nullopt;
  }
  for (const char c : digits)
    if (digit_value(c) >= base) return std::nullopt;
  Int value = 0;
  for (const char c : digits) {
    const auto scaled = multiply(value, base);
    const auto sum = scaled ? subtract(*scaled, digit_value(c)) : std::nullopt;
    if (!sum) {
      too_large = true;
      return std::nullopt;
    }
    value = *sum;
  }
  if (negative) return value;
  if (value == kMin) {
    too_large = true;
    return std::nullopt;
  }
  return -value;
}

std::optional<double> parse_float(std::string_view text) {
  text = trim_right(trim_left(text));
  std::string digits;
  if (!remove_underscores(text, digits) || digits.empty()) return std::nullopt;
  std::string_view body = digits;
  const bool negative = body.starts_with('-');
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  const std::string folded = lower(body);
  const double sign = negative ? -1.0 : 1.0;
  if (folded == "inf" || folded == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (folded == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (body.empty() || !((body[0] >= '0' && body[0] <= '9') || body[0] == '.')) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (end != body.data() + body.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = std::strtod(std::string(body).c_str(), nullptr);
  return sign * value;
}

}  // namespace candor::jinja
