#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "text/jinja/binding.h"
#include "text/jinja/filter_tables.h"
#include "text/jinja/number.h"
#include "text/jinja/operators.h"

namespace candor::jinja {
namespace {

Value abs_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  (void)bind(runtime, arguments, "abs", {}, 0);
  require_defined(runtime, subject);
  if (subject.is<double>()) return Value::floating(std::abs(as_double(subject)));
  if (!subject.is_integral()) runtime.fail("abs: expected a number, got '{}'", type_name(subject));
  if (subject.integral() >= 0) return Value::integer(subject.integral());
  return unary(runtime, UnaryOp::negative, subject);
}

/// The value as an int: of a number its integral part, of a string what it says in that base, else as a float.
std::optional<Int> as_integer(Runtime& runtime, const Value& value, Int base) {
  require_defined(runtime, value);
  if (value.is_integral()) return value.integral();
  double number = 0;
  if (value.is_text()) {
    runtime.scan(value.view().size());
    bool too_large = false;
    if (base == 0 || (base >= 2 && base <= 36)) {
      if (const auto whole = parse_integer(value.view(), static_cast<int>(base), too_large)) return whole;
      if (too_large) runtime.fail("int: a number of more than 127 bits");
    }
    const auto parsed = parse_float(value.view());
    if (!parsed) return std::nullopt;
    number = *parsed;
  } else if (value.is<double>()) {
    number = as_double(value);
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(number)) return std::nullopt;
  const auto whole = truncate(number);
  if (!whole) runtime.fail("int: a number of more than 127 bits");
  return whole;
}

Value int_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "int", {"default", "base"}, 0);
  const auto value = as_integer(runtime, subject, bound.integer(1, 10));
  return value ? Value::integer(*value) : bound.or_else(0, Value::integer(0));
}

std::optional<double> as_float(Runtime& runtime, const Value& value) {
  require_defined(runtime, value);
  if (value.is_number()) return as_double(value);
  if (!value.is_text()) return std::nullopt;
  runtime.scan(value.view().size());
  return parse_float(value.view());
}

Value float_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "float", {"default"}, 0);
  const auto value = as_float(runtime, subject);
  return value ? Value::floating(*value) : bound.or_else(0, Value::floating(0));
}

/// `value` rounded to `digits` decimal places behind the point (in front of it if negative), halves of its exact value
/// to even.
double rounded(double value, int digits) {
  if (!std::isfinite(value) || value == 0 || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  char text[1500];
  if (digits >= 0) {
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return std::strtod(text, nullptr);
  }
  // A double has at most 1074 digits behind the point, so that this text is exact.
  std::snprintf(text, sizeof text, "%.1074f", std::abs(value));
  std::string exact = text;
  exact.erase(exact.find('.'), 1);
  const std::size_t whole = exact.size() - 1074;
  const auto dropped = static_cast<std::size_t>(-digits);
  if (dropped > whole) return std::copysign(0.0, value);
  const std::size_t cut = whole - dropped;
  const std::string rest = exact.substr(cut);
  const bool half = rest[0] == '5' && rest.find_first_not_of('0', 1) == std::string::npos;
  const bool odd = cut > 0 && (exact[cut - 1] - '0') % 2 == 1;
  const bool up = half ? odd : rest[0] >= '5';
  std::string kept(1, '0');
  kept.append(exact, 0, cut);
  for (std::size_t i = kept.size(); up && i-- > 0;) {
    if (kept[i] != '9') {
      ++kept[i];
      break;
    }
    kept[i] = '0';
  }
  kept.append(dropped, '0');
  return std::copysign(std::strtod(kept.c_str(), nullptr), value);
}

/// An int rounded to a multiple of ten to the power −digits, halves to even.
Value rounded_integer(Runtime& runtime, Int value, Int digits) {
  if (digits >= 0) return Value::integer(value);
  const auto unit = power(10, -digits);
  if (!unit) return Value::integer(0);
  const Int rest = modulo(value, *unit);
  const Int down = value - rest;
  const Int quotient = *floor_divide(value, *unit);
  const bool up = rest > *unit - rest || (rest == *unit - rest && quotient % 2 != 0);
  return binary(runtime, BinaryOp::add, Value::integer(down), Value::integer(up ? *unit : 0));
}

Value round_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "round", {"precision", "method"}, 0);
  const std::string_view method = bound.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor")
    runtime.fail("round: the method must be common, ceil or floor");
  require_defined(runtime, subject);
  if (!subject.is_number()) runtime.fail("round: expected a number, got '{}'", type_name(subject));
  if (method == "common") {
    const bool whole = bound.has(0) && bound[0].is_none();
    const Int digits = whole ? 0 : std::clamp<Int>(bound.integer(0, 0), -1000, 1000);
    if (subject.is_integral()) return rounded_integer(runtime, subject.integral(), digits);
    const double value = rounded(as_double(subject), static_cast<int>(digits));
    if (std::isinf(value) && std::isfinite(as_double(subject))) runtime.fail("round: the rounded value is too large");
    if (!whole) return Value::floating(value);
    const auto integer = truncate(value);
    if (!integer) runtime.fail("round: {} is no integer", to_string(value));
    return Value::integer(*integer);
  }
  const Value scale = binary(runtime, BinaryOp::power, Value::integer(10), bound.or_else(0, Value::integer(0)));
  const Value scaled = binary(runtime, BinaryOp::multiply, subject, scale);
  Value whole = scaled;
  if (scaled.is<double>()) {
    const double value = as_double(scaled);
    const auto integer = truncate(method == "ceil" ? std::ceil(value) : std::floor(value));
    if (!integer) runtime.fail("round: {} is no integer of 127 bits", to_string(value));
    whole = Value::integer(*integer);
  }
  return binary(runtime, BinaryOp::divide, whole, scale);
}

Value filesizeformat_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Bound bound = bind(runtime, arguments, "filesizeformat", {"binary"}, 0);
  const auto bytes = as_float(runtime, subject);
  if (!bytes) runtime.fail("filesizeformat: expected a number, got '{}'", type_name(subject));
  const bool binary_units = bound.truth(0, false);
  const double base = binary_units ? 1024 : 1000;
  if (*bytes == 1) return runtime.text("1 Byte");
  if (*bytes < base) {
    const auto whole = truncate(*bytes);
    if (!whole) runtime.fail("filesizeformat: {} is no size", to_string(*bytes));
    return runtime.text(to_string(*whole) + " Bytes");
  }
  if (!(*bytes >= base)) runtime.fail("filesizeformat: {} is no size", to_string(*bytes));
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  std::size_t i = 0;
  do unit *= base;
  while (*bytes >= unit && ++i < kPrefixes.size());
  i = std::min(i, kPrefixes.size() - 1);
  unit = std::pow(base, static_cast<double>(i + 2));
  char prefix = kPrefixes[i];
  if (binary_units && prefix == 'k') prefix = 'K';
  return runtime.text(fmt::format("{:.1f} {}{}B", base * *bytes / unit, prefix, binary_units ? "i" : ""));
}

constexpr FilterEntry kNumberFilters[] = {
    {"abs", abs_filter},     {"filesizeformat", filesizeformat_filter}, {"float", float_filter}, {"int", int_filter},
    {"round", round_filter},
};

}  // namespace

std::span<const FilterEntry> number_filters() {
  return kNumberFilters;
}

}  // namespace candor::jinja
