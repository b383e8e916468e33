// Numbers as Python's int, float and bool compute, compare and print them. Integer results beyond 128 bits are errors.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace candor::jinja {

/// The exact order of two numbers; unordered if one is a NaN.
[[nodiscard]] std::partial_ordering compare_numbers(const Value& a, const Value& b);

[[nodiscard]] double to_double(Int value);
/// The number as a float.
[[nodiscard]] double as_double(const Value& number);

[[nodiscard]] std::string to_string(Int value);
/// repr(float): the shortest digits that read back, "1e+16", "inf", "nan".
[[nodiscard]] std::string to_string(double value);

/// The integral part of `value`, or nothing if it is not finite or has more than 127 bits.
[[nodiscard]] std::optional<Int> truncate(double value);

// a + b, a − b, a × b, or nothing if the result has more than 127 bits.
[[nodiscard]] std::optional<Int> add(Int a, Int b);
[[nodiscard]] std::optional<Int> subtract(Int a, Int b);
[[nodiscard]] std::optional<Int> multiply(Int a, Int b);
/// base to the power `exponent` ≥ 0, or nothing if the result has more than 127 bits.
[[nodiscard]] std::optional<Int> power(Int base, Int exponent);
// ⌊a ÷ b⌋ and a − b·⌊a ÷ b⌋; b is not 0.
[[nodiscard]] std::optional<Int> floor_divide(Int a, Int b);
[[nodiscard]] Int modulo(Int a, Int b);
[[nodiscard]] double modulo(double a, double b);
[[nodiscard]] double floor_divide(double a, double b);

/// int(text, base): white space around, a sign, underscores, 0x prefixes. `base` is 0 or 2 to 36. Nothing if it is not
/// a number of that form; `too_large` tells one that has more than 127 bits.
[[nodiscard]] std::optional<Int> parse_integer(std::string_view text, int base, bool& too_large);
/// float(text): as above, with "inf" and "nan".
[[nodiscard]] std::optional<double> parse_float(std::string_view text);

}  // namespace candor::jinja
